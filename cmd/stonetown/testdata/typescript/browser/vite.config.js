export default { root: import.meta.dirname, logLevel: 'error' }

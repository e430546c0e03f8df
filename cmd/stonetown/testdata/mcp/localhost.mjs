// Names below localhost are the machine itself, which Node.js does not know (see person.mjs).

import dns from 'node:dns'

const { lookup } = dns
dns.lookup = (name, ...rest) => lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, ...rest)

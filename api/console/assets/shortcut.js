// Ctrl+K and ⌘K lead to the search in the header, unless an editor has another use for them.
document.addEventListener("keydown", event => {
  const field = document.getElementById("everything");
  if (!field || event.defaultPrevented || event.altKey || event.shiftKey || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") {
    return;
  }
  event.preventDefault();
  field.focus();
  field.select();
});

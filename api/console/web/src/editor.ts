import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--field)", border: "1px solid var(--soft)", borderRadius: ".5rem", height: "100%" },
  "&.cm-focused": { outline: "3px solid var(--accent)", outlineOffset: "2px" },
  "&.invalid": { borderColor: "var(--bad)" },
  ".cm-scroller": { fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, monospace', fontSize: ".875rem", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-gutters": { color: "var(--soft)", backgroundColor: "var(--ground)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 9%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "transparent", outline: "1px solid var(--soft)" },
  ".cm-panels": { color: "var(--ink)", backgroundColor: "var(--card)" },
  ".cm-button": { color: "var(--ink)", background: "var(--ground)", border: "1px solid var(--soft)" },
  ".cm-textfield": { color: "var(--ink)", backgroundColor: "var(--field)", border: "1px solid var(--soft)" },
  ".cm-searchMatch": { backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

// edit puts an editor in place of a field, which keeps the text that the form sends. The editor is
// in a shadow tree because its style sheets are adopted there, which the policy of the page allows;
// in the page they would be elements with inline styles.
export function edit(field: HTMLTextAreaElement): EditorView {
  const host = document.createElement("div");
  host.className = "editor";
  const root = host.attachShadow({ mode: "open" });
  const label = field.labels?.[0]?.textContent ?? field.name;
  const invalid = field.ariaInvalid === "true";
  let ours = false; // the field has changed because the editor did
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: field.value,
      extensions: [
        lineNumbers(),
        history(),
        indentOnInput(),
        bracketMatching(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        yaml(),
        syntaxHighlighting(colours),
        theme,
        // The tabulator key leaves the editor, as it leaves every field.
        keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
        EditorView.editorAttributes.of({ class: invalid ? "invalid" : "" }),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", ...(invalid && { "aria-invalid": "true" }) }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          ours = true;
          field.value = update.state.doc.toString();
          field.dispatchEvent(new Event("input", { bubbles: true }));
          ours = false;
        }),
      ],
    }),
  });
  field.addEventListener("input", () => {
    if (!ours) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: field.value } });
  });
  field.labels?.[0]?.addEventListener("click", () => view.focus());
  field.after(host);
  field.hidden = true;
  if (invalid) view.focus();
  return view;
}

// find moves the cursor to the definition of a type or of a relation.
export function find(view: EditorView, type: string, relation?: string): void {
  const text = view.state.doc.toString();
  const named = (name: string) => new RegExp(`\\bname["']?: *["']?${name}\\b`, "g");
  const search = named(type);
  let at = search.exec(text)?.index;
  if (at !== undefined && relation) {
    const within = named(relation);
    within.lastIndex = search.lastIndex;
    at = within.exec(text)?.index ?? at;
  }
  if (at === undefined) return;
  view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
  view.focus();
}

// goTo moves the cursor to a line, or to the last one.
export function goTo(view: EditorView, line: number): void {
  const at = view.state.doc.line(Math.min(line, view.state.doc.lines)).from;
  view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
  view.focus();
}

// Where the types are in the text, by the syntax tree of the editor, and edits of the text that change
// some of them. What is between the types, and the text of the others, stays as it is.
import { isolateHistory } from "@codemirror/commands";
import { ensureSyntaxTree } from "@codemirror/language";
import type { EditorState, TransactionSpec } from "@codemirror/state";
import type { SyntaxNode } from "@lezer/common";
import { print } from "./print";
import type { Type } from "./types";

// Place is a type in the text.
type Place = {
  name: string;
  from: number;
  to: number;
  item: boolean; // of a list
  flow: boolean; // the list is in brackets, as in JSON
};

const plain = (text: string) => (/^["']/.test(text) ? text.slice(1, -1) : text);

// nameOf returns the name of a type that a mapping defines; undefined: it defines none.
function nameOf(state: EditorState, mapping: SyntaxNode): string | undefined {
  for (const pair of mapping.getChildren("Pair")) {
    const key = pair.getChild("Key");
    if (!key || plain(state.sliceDoc(key.from, key.to)) !== "name" || !pair.lastChild) continue;
    return plain(state.sliceDoc(pair.lastChild.from, pair.lastChild.to));
  }
  return undefined;
}

const mappings = ["BlockMapping", "FlowMapping"];

// places returns the types of the text, in its order; undefined: it is not a text of types.
function places(state: EditorState): Place[] | undefined {
  const tree = ensureSyntaxTree(state, state.doc.length, 1000);
  if (!tree) return undefined;
  const found: Place[] = [];
  const add = (mapping: SyntaxNode, item: boolean, flow: boolean) => {
    const name = nameOf(state, mapping);
    // A block begins with its first member; the node of a mapping may have blanks before it.
    const from = mapping.name === "BlockMapping" ? (mapping.getChild("Pair")?.from ?? mapping.from) : mapping.from;
    if (name !== undefined) found.push({ name, from, to: mapping.to, item, flow });
  };
  const list = (sequence: SyntaxNode) => {
    for (const item of sequence.getChildren("Item")) {
      const mapping = mappings.map((m) => item.getChild(m)).find(Boolean);
      if (mapping) add(mapping, true, sequence.name === "FlowSequence");
    }
  };
  const root = (node: SyntaxNode) => {
    for (let child = node.firstChild; child; child = child.nextSibling) {
      if (child.name === "Document" || child.name === "Stream") root(child);
      if (child.name === "BlockSequence" || child.name === "FlowSequence") list(child);
      if (!mappings.includes(child.name)) continue;
      const types = child.getChildren("Pair").find((pair) => {
        const key = pair.getChild("Key");
        return key && plain(state.sliceDoc(key.from, key.to)) === "types";
      });
      if (types?.lastChild) list(types.lastChild);
      else add(child, false, child.name === "FlowMapping");
    }
  };
  root(tree.topNode);
  return found;
}

// edits returns the edit that makes the text of some types the text of others. former has the names of
// renamed types, by the new ones. Undefined: the text does not have the types of before.
export function edits(state: EditorState, before: Type[], after: Type[], former: Record<string, string> = {}): TransactionSpec | undefined {
  const at = places(state);
  if (!at || at.length !== before.length || at.some((p, i) => p.name !== before[i]!.name)) return undefined;
  const changes: { from: number; to: number; insert: string }[] = [];
  const kept = new Set(after.map((t) => former[t.name] ?? t.name));
  const text = (t: Type, p: { from: number; flow: boolean }) => {
    if (p.flow) return JSON.stringify(t);
    const column = p.from - state.doc.lineAt(p.from).from;
    return print(t).join("\n" + " ".repeat(column));
  };
  before.forEach((t, i) => {
    const p = at[i]!;
    const next = after.find((a) => (former[a.name] ?? a.name) === t.name);
    if (next && next !== t) changes.push({ from: p.from, to: p.to, insert: text(next, p) });
    if (kept.has(t.name)) return;
    // A removed type goes with its dash, or with a comma.
    const line = state.doc.lineAt(p.from);
    const start = p.flow || !p.item ? p.from : line.from;
    let from = start;
    let to = p.to;
    if (p.flow && at.length > 1) {
      if (i + 1 < at.length) to = at[i + 1]!.from;
      else from = at[i - 1]!.to;
    } else if (to < state.doc.length && !p.flow) {
      to = Math.min(state.doc.length, state.doc.lineAt(to).to + 1);
    }
    changes.push({ from, to, insert: "" });
  });
  for (const t of after) {
    if (before.some((b) => b.name === (former[t.name] ?? t.name))) continue;
    const last = at.at(-1);
    if (last?.flow) changes.push({ from: last.to, to: last.to, insert: ", " + JSON.stringify(t) });
    else if (last && !last.item) changes.push({ from: last.to, to: last.to, insert: "\n---\n" + print(t).join("\n") });
    else {
      const column = last ? state.sliceDoc(state.doc.lineAt(last.from).from, last.from).indexOf("-") : 0;
      const indent = " ".repeat(Math.max(0, column));
      const lines = print(t).map((l, i) => indent + (i ? "  " : "- ") + l).join("\n");
      const end = last ? state.doc.lineAt(last.to).to : state.doc.length;
      const fresh = end === 0 || (!last && state.sliceDoc(end - 1, end) === "\n");
      changes.push({ from: end, to: end, insert: (fresh ? "" : "\n") + lines + (end === state.doc.length ? "\n" : "") });
    }
  }
  // Each edit is undone by itself.
  return { changes, annotations: isolateHistory.of("full"), userEvent: "input.graph", scrollIntoView: false };
}

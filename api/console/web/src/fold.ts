import type { Edge, Node } from "./layout";

export type Graph = { nodes: Node[]; edges: Edge[] };

// How many boxes are shown first, and how many of one box before the rest is a number.
const first = 30;
const several = 8;

// explains reports whether an edge belongs to the proof, or would if it were not missing.
const explains = (e: Edge) => e.kind.startsWith("proof") || e.kind === "missing";

// Folds decides which part of a graph is shown: what can be reached from the first node through
// nodes that are open.
export class Folds {
  readonly #graph: Graph;
  readonly #byID: Map<string, Node>;
  readonly #out = new Map<string, Edge[]>();
  readonly #parent = new Map<string, string>(); // on a shortest way from the first node
  readonly #open = new Map<string, number>(); // how many of its edges an open node shows
  readonly size: number;

  constructor(graph: Graph) {
    this.#graph = graph;
    this.#byID = new Map(graph.nodes.map((n) => [n.id, n]));
    this.size = graph.nodes.length;
    // What explains the answer comes before the rest.
    const rank = (e: Edge) => (explains(e) ? 0 : e.kind.startsWith("except") ? 1 : 2);
    for (const e of graph.edges) {
      const list = this.#out.get(e.from);
      if (list) list.push(e);
      else this.#out.set(e.from, [e]);
    }
    for (const list of this.#out.values()) list.sort((a, b) => rank(a) - rank(b));
    for (const n of this.#reach()) for (const e of this.#out.get(n) ?? []) if (!this.#parent.has(e.to)) this.#parent.set(e.to, n);
    this.fold();
  }

  // #reach returns all nodes, the nearest to the first one first. What is missing may be apart.
  #reach(): string[] {
    const seen = new Set<string>();
    for (const root of this.#roots()) {
      const queue = [root];
      for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
        if (seen.has(at)) continue;
        seen.add(at);
        for (const e of this.#out.get(at) ?? []) queue.push(e.to);
      }
    }
    return [...seen];
  }

  #roots(): string[] {
    const missing = this.#graph.edges.filter((e) => e.kind === "missing").map((e) => e.from);
    return [...new Set([this.#graph.nodes[0]?.id ?? [], missing].flat())];
  }

  // fold shows the proof and what is missing, and what is near as far as there is room.
  fold(): void {
    this.#open.clear();
    for (const e of this.#graph.edges) {
      if (explains(e)) this.#open.set(e.from, Math.max(several, this.#out.get(e.from)!.filter(explains).length));
    }
    for (const id of this.#reach()) {
      if (this.shown().nodes.length >= first) break;
      if (this.#out.has(id) && !this.#open.has(id)) this.#open.set(id, several);
    }
  }

  unfold(): void {
    for (const id of this.#out.keys()) this.#open.set(id, Infinity);
  }

  // toggle opens a node, or closes it. A box with a number shows more of its node.
  toggle(id: string): void {
    const of = id.startsWith("more ") ? id.slice(5) : undefined;
    if (of !== undefined && !this.#byID.has(id)) this.#open.set(of, (this.#open.get(of) ?? 0) + 3 * several);
    else if (this.#open.has(id)) this.#open.delete(id);
    else if (this.#out.has(id)) this.#open.set(id, several);
  }

  // reveal opens the way to a node.
  reveal(id: string): void {
    for (let to = id, from = this.#parent.get(to); from !== undefined; to = from, from = this.#parent.get(to)) {
      const place = this.#out.get(from)!.findIndex((e) => e.to === to);
      this.#open.set(from, Math.max(this.#open.get(from) ?? several, place + 1));
      if (from === this.#graph.nodes[0]?.id) break;
    }
  }

  // search returns the nodes whose text has all words.
  search(text: string, limit: number): Node[] {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const found: Node[] = [];
    for (const n of this.#graph.nodes) {
      const of = `${n.title} ${n.sub ?? ""}`.toLowerCase();
      if (words.every((w) => of.includes(w))) found.push(n);
      if (found.length === limit) break;
    }
    return found;
  }

  // shown returns the part that is shown. Closed nodes say how much is in them.
  shown(): Graph {
    const nodes = new Map<string, Node>();
    const edges: Edge[] = [];
    const queue = this.#roots();
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      const n = this.#byID.get(id);
      if (!n || nodes.has(id)) continue;
      const out = this.#out.get(id) ?? [];
      const open = this.#open.get(id) ?? 0;
      nodes.set(id, out.length && !open ? { ...n, kind: `${n.kind} folded`, sub: `${n.sub ?? ""} (${out.length})`.trim() } : n);
      for (const e of out.slice(0, open)) {
        edges.push(e);
        queue.push(e.to);
      }
      if (open && out.length > open) {
        const more = `more ${id}`;
        nodes.set(more, { id: more, title: `${out.length - open} more`, kind: "more" });
        edges.push({ from: id, to: more, label: "", kind: "" });
      }
    }
    return { nodes: [...nodes.values()], edges };
  }
}

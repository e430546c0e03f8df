import type { components } from "./api";
import type { Edge, Node } from "./layout";

type Schemas = components["schemas"];
export type Type = Schemas["ResourceTypeInput"];
type Rewrite = Schemas["Rewrite"];

const set = (type: string, relation: string) => `${type}#${relation}`;

// graphOf returns resource types as a graph: a frame for each type, with its relations, and an arrow
// to each of what a relation consists of.
export function graphOf(types: Type[]): { nodes: Node[]; edges: Edge[] } {
  const nodes = new Map<string, Node>();
  const edges = new Map<string, Edge>();
  for (const t of types) {
    nodes.set(t.name, { id: t.name, title: t.name, kind: t.relations?.length ? "frame" : "subject" });
    for (const r of t.relations ?? []) nodes.set(set(t.name, r.name), { id: set(t.name, r.name), title: r.name, kind: "set", parent: t.name });
  }
  const line = (from: string, to: string, label: string, kind: string) => {
    if (!nodes.has(to)) nodes.set(to, { id: to, title: to, kind: "subject" });
    edges.set(`${from} ${to} ${label} ${kind}`, { from, to, label, kind });
  };
  for (const t of types) {
    const subjects = new Map(t.relations?.map((r) => [r.name, r.subjects ?? []]));
    for (const r of t.relations ?? []) {
      const from = set(t.name, r.name);
      const draw = (rewrite: Rewrite, kind: string) => {
        switch (rewrite.kind) {
          case "this":
            for (const subject of subjects.get(r.name) ?? []) {
              const everyone = subject.endsWith(":*");
              const to = everyone ? subject.slice(0, -2) : subject;
              line(from, nodes.has(to) ? to : to.split("#")[0]!, everyone ? "everyone" : "", kind);
            }
            break;
          case "computed":
            line(from, set(t.name, rewrite.relation), "", kind);
            break;
          case "tuple_to_userset": {
            const label = `${rewrite.mode === "all" ? "every " : ""}${rewrite.tupleset}`;
            const parents = subjects.get(rewrite.tupleset)?.map((s) => set(s, rewrite.computed)).filter((to) => nodes.has(to)) ?? [];
            if (parents.length) parents.forEach((to) => line(from, to, label, kind));
            else line(from, set(t.name, rewrite.tupleset), `${label} → ${rewrite.computed}`, kind);
            break;
          }
          case "exclusion":
            draw(rewrite.base, kind);
            draw(rewrite.subtract, "except");
            break;
          case "union":
          case "intersection":
            rewrite.children.forEach((child) => draw(child, kind));
        }
      };
      const rewrites: Rewrite[] = r.rewrites?.length ? r.rewrites : [{ kind: "this" }];
      rewrites.forEach((rewrite) => draw(rewrite, ""));
    }
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

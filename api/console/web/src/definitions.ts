// Changes of resource types, as the panel beside the graph makes them. They return new types and leave
// those that do not change as they are, so that a change can be found by comparing.
import type { Type } from "./types";

export type Relation = NonNullable<Type["relations"]>[number];
export type Rewrite = NonNullable<Relation["rewrites"]>[number];

// named is a name of a type or a relation, as the server accepts it.
export const named = /^[a-z][a-z0-9_]{0,62}$/;

const replaced = (types: Type[], name: string, by: (t: Type) => Type) => types.map((t) => (t.name === name ? by(t) : t));

// changeRelation changes a relation of a type.
export const changeRelation = (types: Type[], type: string, relation: string, by: (r: Relation) => Relation): Type[] =>
  replaced(types, type, (t) => ({ ...t, relations: t.relations?.map((r) => (r.name === relation ? by(r) : r)) }));

export const addType = (types: Type[], name: string): Type[] => [...types, { name }];
export const removeType = (types: Type[], name: string): Type[] => types.filter((t) => t.name !== name);

export const addRelation = (types: Type[], type: string, name: string): Type[] =>
  replaced(types, type, (t) => ({ ...t, relations: [...(t.relations ?? []), { name, subjects: [] }] }));
export const removeRelation = (types: Type[], type: string, name: string): Type[] =>
  replaced(types, type, (t) => ({ ...t, relations: t.relations?.filter((r) => r.name !== name) }));

// every returns a copy of a relation with each rewrite changed, the inner ones first.
const every = (r: Relation, by: (rewrite: Rewrite) => Rewrite): Relation => {
  const walk = (rewrite: Rewrite): Rewrite => {
    switch (rewrite.kind) {
      case "union":
      case "intersection":
        return by({ ...rewrite, children: rewrite.children.map(walk) });
      case "exclusion":
        return by({ ...rewrite, base: walk(rewrite.base), subtract: walk(rewrite.subtract) });
    }
    return by(rewrite);
  };
  return { ...r, ...(r.rewrites && { rewrites: r.rewrites.map(walk) }) };
};

// settled returns what a change would be without the types whose content is the same.
const settled = (before: Type[], after: Type[]): Type[] =>
  after.map((t) => {
    const was = before.find((b) => b.name === t.name);
    return was && JSON.stringify(was) === JSON.stringify(t) ? was : t;
  });

// renameType renames a type and the subjects that name it.
export function renameType(types: Type[], from: string, to: string): Type[] {
  const subject = (s: string) => (s === from || s.startsWith(from + "#") || s.startsWith(from + ":") ? to + s.slice(from.length) : s);
  const after = types.map((t) => ({
    ...t,
    name: t.name === from ? to : t.name,
    relations: t.relations?.map((r) => (r.subjects ? { ...r, subjects: r.subjects.map(subject) } : r)),
  }));
  return settled(types, after);
}

// renameRelation renames a relation of a type, and what names it: rewrites and actions of the type,
// subjects that are usersets of it, and rewrites that follow a relation to the type, if it leads to no
// other.
export function renameRelation(types: Type[], type: string, from: string, to: string): Type[] {
  const name = (n: string) => (n === from ? to : n);
  const after = types.map((t) => {
    const own = t.name === type;
    const leads = (tupleset: string) => {
      const found = t.relations?.find((r) => r.name === tupleset)?.subjects?.map((s) => s.split(/[#:]/)[0]);
      return Boolean(found?.length) && found!.every((s) => s === type);
    };
    const rewritten = (rewrite: Rewrite): Rewrite => {
      if (rewrite.kind === "computed" && own) return { ...rewrite, relation: name(rewrite.relation) };
      if (rewrite.kind !== "tuple_to_userset") return rewrite;
      return { ...rewrite, tupleset: own ? name(rewrite.tupleset) : rewrite.tupleset, computed: leads(rewrite.tupleset) ? name(rewrite.computed) : rewrite.computed };
    };
    return {
      ...t,
      relations: t.relations?.map((r) => {
        const changed = every(r, rewritten);
        if (own) changed.name = name(changed.name);
        return changed.subjects ? { ...changed, subjects: changed.subjects.map((s) => (s === `${type}#${from}` ? `${type}#${to}` : s)) } : changed;
      }),
      ...(own && t.actions && { actions: Object.fromEntries(Object.entries(t.actions).map(([action, relation]) => [action, name(relation)])) }),
    };
  });
  return settled(types, after);
}

// Rename is a rename of a type or, with the former name of its type, of a relation.
type Rename = { type: string; from: string; to: string };

// renamed adds a rename of a type, or of a relation of a type, to the lines of the field for renames,
// if the name is an active one or the result of an earlier rename. Stored relations then get the name.
export function renamed(lines: string, active: Set<string>, type: string, from: string, to: string): string {
  const all: Rename[] = lines
    .split("\n")
    .map((l) => /^\s*(?:([^#=\s]+)#)?([^#=\s]+)\s*=\s*(\S+)\s*$/.exec(l))
    .filter((m) => m !== null)
    .map((m) => ({ type: m[1] ?? "", from: m[2]!, to: m[3]! }));
  const former = type && (all.find((r) => !r.type && r.to === type)?.from ?? type);
  const earlier = all.find((r) => r.type === former && r.to === from);
  if (earlier) earlier.to = to;
  else if (active.has(former ? `${former}#${from}` : from)) all.push({ type: former, from, to });
  return all
    .filter((r) => r.from !== r.to)
    .map((r) => (r.type ? `${r.type}#` : "") + `${r.from}=${r.to}`)
    .join("\n");
}

// renamesOf returns the lines of renames that hold for types: others as they are, and those of some that
// lead from a name that no type or relation has to one that it has.
export function renamesOf(types: Type[], others: string[], some: string[]): string[] {
  const parsed = some.map((line) => {
    const [left, to] = line.split("=") as [string, string];
    const [first, inner] = left.split("#") as [string, string?];
    return { line, type: inner === undefined ? "" : first, from: inner ?? first, to };
  });
  const has = (name: string) => types.some((t) => t.name === name);
  const ofTypes = parsed.filter((r) => !r.type && has(r.to) && !has(r.from));
  const ofRelations = parsed.filter((r) => {
    if (!r.type) return false;
    const now = ofTypes.find((t) => t.from === r.type)?.to ?? r.type;
    const names = types.find((t) => t.name === now)?.relations?.map((one) => one.name) ?? [];
    return names.includes(r.to) && !names.includes(r.from);
  });
  return [...others, ...ofTypes.map((r) => r.line), ...ofRelations.map((r) => r.line)];
}

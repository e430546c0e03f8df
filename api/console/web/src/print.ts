// Resource types as YAML, in the form in which the server prints them: short lists and objects are in
// one line.
import type { Rewrite } from "./definitions";
import type { Type } from "./types";

const maxLine = 80;

// word is a text as a scalar. One that YAML could read as something else is in quotes: single ones or,
// with control characters, double ones, whose escapes are those of JSON (YAML 1.2 §5.7, §7.3).
const word = (text: string): string => {
  if (/^[A-Za-z_][A-Za-z0-9_#./ -]*$/.test(text) && !/ #| $|^(true|false|null|yes|no|on|off|y|n)$/i.test(text)) return text;
  return /^[\x20-\x7e\u00a0-\ud7ff]*$/.test(text) ? `'${text.replaceAll("'", "''")}'` : JSON.stringify(text);
};

const scalar = (value: unknown): string => (typeof value === "string" ? word(value) : JSON.stringify(value));

// inline returns a value in one line; undefined: it takes several.
function inline(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    if (value.some((item) => typeof item === "object" && item !== null)) return value.length ? undefined : "[]";
    return fits(`[${value.map(scalar).join(", ")}]`);
  }
  if (typeof value !== "object" || value === null) return scalar(value);
  const parts = Object.entries(value).map(([name, member]) => {
    const text = inline(member);
    return text && `${word(name)}: ${text}`;
  });
  return parts.every(Boolean) ? fits(`{${parts.join(", ")}}`) : undefined;
}

const fits = (text: string) => (text.length <= maxLine ? text : undefined);

// lines returns the lines of a value that takes several.
function lines(value: object): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown) => {
      const one = inline(item);
      if (one !== undefined || typeof item !== "object" || item === null) return [`- ${one ?? scalar(item)}`];
      return lines(item).map((l, i) => (i ? "  " : "- ") + l);
    });
  }
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    const one = inline(member);
    if (one !== undefined || typeof member !== "object" || member === null) return [`${word(name)}: ${one ?? scalar(member)}`];
    return [`${word(name)}:`, ...lines(member).map((l) => "  " + l)];
  });
}

const order = ["name", "description", "deprecated", "relations", "actions", "conditions"];
const ofRelation = ["name", "subjects", "cardinality", "on_second", "deprecated", "rewrites"];

const sorted = (o: object, names: string[]) =>
  Object.fromEntries(
    Object.entries(o)
      .filter(([, value]) => value !== undefined)
      .sort(([a], [b]) => names.indexOf(a) - names.indexOf(b)), // the names are all that there are
  );

// brief leaves out what is the default of a rewrite.
const brief = (r: Rewrite): object => {
  switch (r.kind) {
    case "tuple_to_userset":
      return { kind: r.kind, tupleset: r.tupleset, computed: r.computed, ...(r.mode === "all" && { mode: r.mode }) };
    case "union":
    case "intersection":
      return { ...r, children: r.children.map(brief) };
    case "exclusion":
      return { ...r, base: brief(r.base), subtract: brief(r.subtract) };
  }
  return r;
};

// print returns the lines of a type.
export function print(t: Type): string[] {
  const relations = t.relations?.map((r) => sorted({ ...r, rewrites: r.rewrites?.length ? r.rewrites.map(brief) : undefined }, ofRelation));
  return lines(sorted({ ...t, relations: relations?.length ? relations : undefined }, order));
}

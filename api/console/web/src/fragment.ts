import type { Question } from "./engine";

// Shared is what a link has: the document and the question.
export type Shared = Question & { text: string };

// Limits of a link. Its sender may be anybody.
const longest = 64_000; // letters
const largest = 1 << 20; // bytes of what they stand for

const prefix = "#m=";
const fields = ["text", "subject", "action", "resource", "type", "context", "at"] as const;

const through = (bytes: BlobPart, stream: CompressionStream | DecompressionStream) => new Blob([bytes]).stream().pipeThrough(stream);

// toFragment returns the fragment of a link. It fails if it would be too long.
export async function toFragment(shared: Shared): Promise<string> {
  const packed = new Uint8Array(await new Response(through(JSON.stringify(shared), new CompressionStream("deflate-raw"))).arrayBuffer());
  let letters = "";
  for (const byte of packed) letters += String.fromCharCode(byte);
  const text = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  if (text.length > longest) throw new Error(`The document is too long for a link: compressed it has ${text.length} letters, and a link has at most ${longest}.`);
  return prefix + text;
}

// fromFragment reads the fragment of a link; undefined: it is another one. It fails if it is not
// valid.
export async function fromFragment(fragment: string): Promise<Shared | undefined> {
  if (!fragment.startsWith(prefix)) return undefined;
  const text = fragment.slice(prefix.length);
  if (text.length > longest) throw new Error(`The link is too long: at most ${longest} letters.`);
  try {
    const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return checked(JSON.parse(await inflated(packed)));
  } catch (e) {
    throw new Error("The link is damaged, or of another version.", { cause: e });
  }
}

// inflated decompresses a text, and stops at the limit.
async function inflated(packed: Uint8Array<ArrayBuffer>): Promise<string> {
  const reader = through(packed, new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    if ((size += value.length) > largest) throw new Error("too large");
    text += decoder.decode(value, { stream: true });
  }
}

// checked requires that a value is what toFragment has written.
function checked(value: unknown): Shared {
  const given = value as Partial<Record<string, unknown>> | null;
  const op = given?.op;
  if (op !== "check" && op !== "resources" && op !== "subjects") throw new Error("no operation");
  const shared: Shared = { op, text: "", subject: "", action: "", resource: "", type: "", context: "", at: "" };
  for (const field of fields) {
    const text = given?.[field];
    if (typeof text !== "string") throw new Error(field);
    shared[field] = text;
  }
  return shared;
}

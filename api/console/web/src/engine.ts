import type { Graph } from "./fold";
import type { Type } from "./types";

// Question is what a person asks of a document; the fields of other operations are ignored.
export type Question = { op: "check" | "resources" | "subjects"; subject: string; action: string; resource: string; type: string; context: string; at: string };

export type Request = { text: string } & ({ op: "run" | "uncovered" } | Question);

type Ref = { type: string; external_id: string };
type Subject = { type: string; id: string; relation?: string };
type Reason = { via: string; text: string };
export type Missing = { resource: Ref; relation: string; subject: Subject; state: "absent" | "expired" | "condition_unmet" | "condition_undecided"; expires_at: string; condition: { name: string } | null };
export type Decision = {
  allowed: boolean;
  reasons: Reason[] | null;
  denial: { ways: { relations: Missing[] | null; exclusions: { resource: Ref; relation: string; reasons: Reason[] | null }[] | null }[] | null; truncated: boolean } | null;
};
export type Test = { line?: number; name?: string; question: string; want?: string; got?: string };

// Answer has the members of the operation, or an error (package playground).
export type Answer = {
  error?: string;
  field?: string;
  line?: number;
  engine?: string;
  types?: Type[];
  relations?: number;
  findings?: { line?: number; kind: string; message: string }[];
  tests?: Test[];
  parts?: string[];
  decision?: Decision;
  graph?: Graph;
  unknown?: boolean;
  ids?: string[];
  more?: boolean;
};

// patience is how long an answer may take, in milliseconds.
const patience = 30_000;

type Message = { ready: WebAssembly.Module } | { failed: string } | { ended: true } | { answer: string };

// Engine is the engine in a worker. It answers one request after the other.
export class Engine {
  readonly #scripts: string;
  #module: WebAssembly.Module | undefined; // compiled, for another worker
  #worker: Promise<Worker> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  // scripts is the address of the folder with the program.
  constructor(scripts: string) {
    this.#scripts = scripts;
  }

  ask(request: Request): Promise<Answer> {
    const answer = this.#last.then(() => this.#ask(request));
    this.#last = answer;
    return answer;
  }

  async #ask(request: Request): Promise<Answer> {
    let worker: Worker;
    try {
      worker = await (this.#worker ??= this.#start());
    } catch (e) {
      this.#worker = undefined;
      return { error: `the engine cannot be loaded: ${e instanceof Error ? e.message : e}` };
    }
    return new Promise((done) => {
      const stop = (error: string) => {
        worker.terminate();
        this.#worker = undefined;
        done({ error });
      };
      const timer = setTimeout(() => stop(`stopped after ${patience / 1000} seconds`), patience);
      worker.onmessage = (e: MessageEvent<Message>) => {
        clearTimeout(timer);
        if ("answer" in e.data) done(JSON.parse(e.data.answer) as Answer);
        else stop("the engine has failed; the browser's console may say why");
      };
      worker.postMessage({ request: JSON.stringify(request) });
    });
  }

  #start(): Promise<Worker> {
    return new Promise((done, fail) => {
      const worker = new Worker(`${this.#scripts}engine-worker.js`);
      worker.onerror = () => fail(new Error("its script is missing"));
      worker.onmessage = (e: MessageEvent<Message>) => {
        if (!("ready" in e.data)) return fail(new Error("failed" in e.data ? e.data.failed : "it has ended"));
        this.#module = e.data.ready;
        done(worker);
      };
      worker.postMessage({ module: this.#module });
    });
  }
}

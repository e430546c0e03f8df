// The engine, in a worker: a question that takes long does not block the page, which can end the
// worker. go.js comes with the Go toolchain that has built the engine.
"use strict";
importScripts("go.js");

onmessage = async ({ data }) => {
  if (data.request !== undefined) {
    stonetown(data.request, (answer) => postMessage({ answer }));
    return;
  }
  try {
    const module = data.module ?? (await load());
    const go = new Go();
    const instance = await WebAssembly.instantiate(module, go.importObject);
    go.run(instance).finally(() => postMessage({ ended: true })); // it ends only if it fails
    postMessage({ ready: module });
  } catch (e) {
    postMessage({ failed: String(e) });
  }
};

// load compiles the engine. Some servers make their clients decompress a file with this name.
async function load() {
  const response = await fetch("engine.gz");
  if (!response.ok) throw new Error(`status ${response.status}`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return WebAssembly.compile(bytes);
  const program = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compileStreaming(new Response(program, { headers: { "Content-Type": "application/wasm" } }));
}

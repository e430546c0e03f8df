// Writes collection.json, the document as a collection for HTTP clients (Postman
// v2.1): a document converted by openapi-to-postmanv2, without what changes
// from run to run. Run by `make collection`.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { convertV2 } = createRequire(join(process.cwd(), "x"))("openapi-to-postmanv2");
const [, , from, to] = process.argv;
const options = {
  folderStrategy: "Tags",
  parametersResolution: "Example",
  alwaysInheritAuthentication: true,
};

const document = readFileSync(from, "utf8");
const [, server] = /\nservers:\n  - url: (\S+)\n/.exec(document);

convertV2({ type: "string", data: document }, options, (error, result) => {
  if (error || !result.result) throw error ?? new Error(result.reason);
  const { info, item } = result.output[0].data;
  delete info._postman_id;
  const collection = {
    info,
    item: item.map(clean),
    auth: { type: "bearer", bearer: [{ key: "token", value: "{{access_token}}", type: "string" }] },
    variable: [
      { key: "baseUrl", value: server },
      { key: "access_token", value: "" },
    ],
  };
  writeFileSync(to, JSON.stringify(collection, null, 1) + "\n");
});

// clean drops ids, which are drawn at random, and sample responses, which are in
// the document.
function clean(node) {
  if (node.item) return { name: node.name, description: node.description, item: node.item.map(clean) };
  const { name, request } = node;
  delete request.auth;
  return { name, request };
}

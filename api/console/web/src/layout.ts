import ELK, { type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk-api.js";
import worker from "elkjs/lib/elk-worker.min.js?url";

// Node is a box of a drawing. A frame has other boxes in it.
export type Node = { id: string; title: string; sub?: string; kind: string; parent?: string };

// Edge is an arrow.
export type Edge = { from: string; to: string; label: string; kind: string };

export type Box = Node & Area;
export type Line = Edge & { path: string; labelX: number; labelY: number } & Area;
// Area is what a box or a line covers.
export type Area = { x: number; y: number; width: number; height: number };
export type Drawing = { width: number; height: number; boxes: Box[]; lines: Line[] };

// The width of a letter, and how many of a title are shown.
const letter = 8;
export const wide = 34;

const sizeOf = (n: Node) => ({
  width: Math.min(wide, Math.max(n.title.length, n.sub?.length ?? 0)) * letter + 28,
  height: n.sub ? 48 : 30,
});

// A graph with more boxes is laid out quickly rather than well: of 5,000, in a second instead of 30.
const many = 600;
const quick = { "elk.layered.nodePlacement.strategy": "SIMPLE", "elk.edgeRouting": "POLYLINE", "elk.layered.thoroughness": "1" };

let elk: InstanceType<typeof ELK> | undefined;

// layOut places boxes in layers from left to right, in a worker that starts with the first drawing.
export async function layOut(nodes: Node[], edges: Edge[]): Promise<Drawing> {
  elk ??= new ELK({ workerFactory: () => new Worker(worker) });
  const all = new Map<string, ElkNode>(nodes.map((n) => [n.id, { id: n.id, ...sizeOf(n) }]));
  const roots: ElkNode[] = [];
  for (const n of nodes) {
    const at = all.get(n.id)!;
    const frame = n.parent === undefined ? undefined : all.get(n.parent);
    if (!frame) {
      roots.push(at);
      continue;
    }
    (frame.children ??= []).push(at);
    frame.layoutOptions = { "elk.padding": "[top=40,left=14,bottom=14,right=14]", "elk.nodeSize.constraints": "MINIMUM_SIZE", "elk.nodeSize.minimum": `(${frame.width},${frame.height})` };
  }
  const large = nodes.length > many;
  const links: ElkExtendedEdge[] = edges.map((e, i) => ({
    id: `edge ${i}`,
    sources: [e.from],
    targets: [e.to],
    labels: e.label && !large ? [{ text: e.label, width: e.label.length * 6.5, height: 14 }] : [],
  }));
  const placed: ElkNode = await elk.layout({
    id: "root",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": "RIGHT",
      "elk.hierarchyHandling": "INCLUDE_CHILDREN",
      "elk.layered.spacing.nodeNodeBetweenLayers": "50",
      "elk.spacing.nodeNode": "16",
      "elk.json.shapeCoords": "ROOT",
      "elk.json.edgeCoords": "ROOT",
      ...(large && quick),
    },
    children: roots,
    edges: links,
  });
  const boxes: Box[] = nodes.map((n) => {
    const at = all.get(n.id)!;
    return { ...n, x: 0, y: 0, width: at.width!, height: at.height! };
  });
  const found = new Map<string, ElkNode>();
  const collect = (list?: ElkNode[]) => list?.forEach((n) => (found.set(n.id, n), collect(n.children)));
  collect(placed.children);
  for (const b of boxes) {
    const at = found.get(b.id);
    if (at) Object.assign(b, { x: at.x, y: at.y, width: at.width, height: at.height });
  }
  const routed = new Map((placed.edges ?? []).map((e) => [e.id, e]));
  const lines: Line[] = edges.flatMap((e, i) => {
    const way = routed.get(`edge ${i}`);
    const section = way?.sections?.[0];
    if (!section) return [];
    const points = [section.startPoint, ...(section.bendPoints ?? []), section.endPoint];
    const label = way.labels?.[0];
    const xs = points.map((p) => p.x);
    const ys = points.map((p) => p.y);
    const x = Math.min(...xs);
    const y = Math.min(...ys);
    return [{ ...e, x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y, label: label ? e.label : "", path: rounded(points), labelX: (label?.x ?? 0) + (label?.width ?? 0) / 2, labelY: (label?.y ?? 0) + 11 }];
  });
  return { width: placed.width ?? 0, height: placed.height ?? 0, boxes, lines };
}

type Point = { x: number; y: number };

// rounded draws a line through points, with round corners. It ends before the arrow.
function rounded(points: Point[]): string {
  const radius = 8;
  const toward = (from: Point, to: Point, by: number) => {
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const part = Math.min(by, length / 2) / length;
    return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
  };
  const last = points.length - 1;
  const end = toward(points[last]!, points[last - 1]!, 8);
  let path = `M${points[0]!.x} ${points[0]!.y}`;
  for (let i = 1; i < last; i++) {
    const corner = points[i]!;
    const before = toward(corner, points[i - 1]!, radius);
    const after = toward(corner, points[i + 1]!, radius);
    path += `L${before.x} ${before.y}Q${corner.x} ${corner.y} ${after.x} ${after.y}`;
  }
  return `${path}L${end.x} ${end.y}`;
}

// The island of the page Access: the graph of an answer, which can be moved, folded and searched.
// Without it, the page has a picture and the same as a list.
import { mount } from "svelte";
import Explorer from "./Explorer.svelte";
import type { Graph } from "./fold";

const target = document.querySelector<HTMLElement>("#island[data-graph]");
if (target) mount(Explorer, { target, props: { graph: JSON.parse(target.dataset.graph!) as Graph } });

// The island of the page Model: an editor in place of the field, a comparison while one types, and
// the types as a graph. Without it, the page is a form.
import { mount } from "svelte";
import Model from "./Model.svelte";

const form = document.querySelector<HTMLFormElement>("form.model");
const target = document.querySelector<HTMLElement>("#island");
if (form && target) mount(Model, { target, props: { form } });

// Follows the progress of a job: reads the page again and shows what it says now, until it is over.
const follow = async () => {
  const answer = await fetch(location.pathname, { redirect: "error" });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const now = page.querySelector("#progress");
  document.querySelector("#progress").replaceWith(now);
  // Screen readers say the state only if it has changed.
  const state = page.querySelector("#state").textContent;
  const shown = document.querySelector("#state");
  if (shown.textContent !== state) shown.textContent = state;
  if (now.dataset.underway) setTimeout(follow, 2000);
};
setTimeout(follow, 2000);

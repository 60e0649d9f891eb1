// Airflow shows the page in a frame that may not lead its own window elsewhere: links to Airflow are followed by Airflow.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-leave]");
  if (!link || window.parent === window) return;
  event.preventDefault();
  const outside = window.parent.document.createElement("a");
  outside.href = link.href;
  window.parent.document.body.append(outside);
  outside.click();
  outside.remove();
});

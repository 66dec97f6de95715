// Sign in: the secret of a link is behind "#", which no server is sent; it is exchanged for a cookie and the tab's key.
"use strict";

const says = document.getElementById("says");

async function signIn(given) {
  const response = await fetch("/sign-in", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given) });
  const answer = await response.json();
  if (!answer.ok) return answer.message;
  sessionStorage.setItem("landlane-key", answer.key);
  const path = location.pathname.replace(/^\/sign-in/, "");
  location.replace(path.startsWith("/") && !path.startsWith("//") ? path + location.search : "/");
  return "";
}

const token = location.hash.slice(1);
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  says.textContent = "Signing in …";
  signIn({ token }).then(trouble => { if (trouble) says.textContent = "Not signed in: " + trouble + ". Get a new one: landlane ui"; });
}

document.getElementById("code-form").addEventListener("submit", async event => {
  event.preventDefault();
  const wrong = document.getElementById("wrong");
  wrong.textContent = "";
  wrong.textContent = await signIn({ code: document.getElementById("code").value });
});

document.getElementById("app")!.textContent = "agentd";

"use strict";

// Starts `elastalog lsp` and lets the editor talk to it.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate(context) {
  const settings = workspace.getConfiguration("elastalog");
  const server = { command: settings.get("command"), args: ["lsp", ...settings.get("arguments")] };
  const watcher = workspace.createFileSystemWatcher("**/*.dl");
  context.subscriptions.push(watcher);
  client = new LanguageClient("elastalog", "Elastalog", server, {
    documentSelector: [{ scheme: "file", language: "elastalog" }],
    synchronize: { fileEvents: watcher },
  });
  await client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };

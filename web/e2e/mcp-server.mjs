// An MCP server on standard input and output with one tool, which asks the user for a few things and tells what it heard.
import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const form = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name", description: "What the release is called" },
    copies: { type: "integer", title: "Copies", minimum: 1, maximum: 9 },
    channel: { type: "string", title: "Channel", enum: ["stable", "beta"] },
    announce: { type: "boolean", title: "Announce it" },
  },
  required: ["name", "channel"],
};

let calling;
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === "initialize") {
    const { protocolVersion } = params;
    const serverInfo = { name: "desk", version: "1" };
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === "tools/list") {
    const inputSchema = { type: "object", properties: {} };
    send({ id, result: { tools: [{ name: "ask", description: "Asks for a release", inputSchema }] } });
  } else if (method === "tools/call") {
    calling = id;
    const question = { message: "Which release is it?", requestedSchema: form };
    send({ id: "question", method: "elicitation/create", params: question });
  } else if (id === "question") {
    const text = `heard: ${JSON.stringify(result ?? error)}`;
    send({ id: calling, result: { content: [{ type: "text", text }] } });
  } else if (id !== undefined) {
    send({ id, error: { code: -32601, message: "no such method" } });
  }
});

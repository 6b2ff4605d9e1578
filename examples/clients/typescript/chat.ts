// Sends a chat message and allows every permission request.

const url = process.env.TILLER_URL!.replace('http', 'ws');
// Node's WebSocket can send headers; a browser's can't, and uses the page's cookie.
const options: any = { headers: { Authorization: `Bearer ${process.env.TILLER_KEY}` } };
const chat = new WebSocket(`${url}/ws?session_id=example`, options);
const send = (message: object) => chat.send(JSON.stringify(message));

chat.onopen = () =>
  send({ type: 'user_message', session_id: 'example', message: { content: process.argv[2] } });
chat.onmessage = ({ data }) => {
  const frame = JSON.parse(data);
  if (frame.type === 'stream') process.stdout.write(frame.event.delta?.text ?? '');
  else if (frame.type === 'permission_request') {
    console.log(`\n? ${frame.tool_name} ${JSON.stringify(frame.input)}`);
    send({ type: 'permission_response', request_id: frame.request_id, decision: 'allow' });
  } else if (frame.type === 'error' && frame.details.code !== 'TOOL_ERROR') {
    console.error(frame.error, frame.details.message);
    process.exit(1);
  } else if (frame.type === 'result') {
    console.log(`\n${frame.subtype} after ${frame.num_turns} turns`);
    chat.close();
  }
};

// Starts a session over the event API, follows it to its end, and allows every permission request.

const url = process.env.TILLER_URL!.replace('http', 'ws');
const options: any = { headers: { Authorization: `Bearer ${process.env.TILLER_KEY}` } };
const socket = new WebSocket(`${url}/ws/events`, options);
const send = (type: string, payload: object) => socket.send(JSON.stringify({ type, payload }));
let session: string | undefined;

socket.onopen = () => send('session.start', { title: '', prompt: process.argv[2], requestId: 'mine' });
socket.onmessage = ({ data }) => {
  const { type, payload } = JSON.parse(data);
  if (type === 'runner.error') throw new Error(payload.message);
  if (type === 'session.started') {
    session = payload.sessionId as string;
    // From the beginning: events before this frame are sent again.
    send('session.subscribe', { sessionId: session });
  }
  if (session === undefined || payload.sessionId !== session) return;
  if (type === 'stream.message') process.stdout.write(payload.message.event?.delta?.text ?? '');
  else if (type === 'permission.request')
    send('permission.response', {
      sessionId: session,
      requestId: payload.requestId,
      result: { behavior: 'allow' },
    });
  else if (type === 'session.status' && payload.status !== 'running') {
    console.log(`\n${payload.status}`);
    process.exit(payload.status === 'completed' ? 0 : 1);
  }
};

// Runs a task as a stream of events and answers its requests.

const url = process.env.TILLER_URL!;
const headers = { Authorization: `Bearer ${process.env.TILLER_KEY}`, 'Content-Type': 'application/json' };

interface TaskEvent {
  type: string;
  session_id: string;
  [field: string]: any;
}

const post = (path: string, body: object) =>
  fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });

async function* events(response: Response): AsyncGenerator<TaskEvent> {
  let text = '';
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const lines = text.split('\n');
    text = lines.pop()!;
    for (const line of lines) {
      if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length));
    }
  }
}

const response = await post('/api/task/stream', { prompt: process.argv[2] });
if (!response.ok) throw new Error(await response.text());
for await (const event of events(response)) {
  const { type, session_id } = event;
  if (type === 'text') process.stdout.write(event.text);
  else if (type === 'tool_use') console.log(`\n* ${event.name} ${JSON.stringify(event.input)}`);
  else if (type === 'permission_request')
    await post('/api/task/permission', { session_id, request_id: event.request_id, decision: 'allow' });
  else if (type === 'ask_user_question')
    await post('/api/task/answer', { session_id, question_id: event.question_id, answer: event.options[0].label });
  else if (type === 'complete') {
    console.log(`\n${event.success ? 'done' : 'failed'} in ${event.duration_ms} ms for $${event.cost_usd}`);
    process.exitCode = event.success ? 0 : 1;
  }
}

// Lists the newest conversations of every project and searches them.

const url = process.env.TILLER_URL!;
const headers = { Authorization: `Bearer ${process.env.TILLER_KEY}` };

async function get(path: string, query: Record<string, string> = {}): Promise<any> {
  const response = await fetch(`${url}${path}?${new URLSearchParams(query)}`, { headers });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

for (const project of (await get('/api/history/projects')).projects) {
  console.log(project.path);
  for (const session of (await get(`/api/history/projects/${project.id}/sessions`, { limit: '3' })).sessions)
    console.log(`  ${session.id}  ${session.message_count} messages  ${session.title}`);
}
for (const found of (await get('/api/history/search', { q: process.argv[2] })).results)
  console.log(`${found.timestamp}  ${found.role}: ${found.excerpt}`);

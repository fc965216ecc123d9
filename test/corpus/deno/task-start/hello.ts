Deno.serve({ port: 4507 }, () => new Response('by the task'))

const port = Number(Deno.env.get('PORT'))
Deno.serve({ port, hostname: '127.0.0.1' }, () => new Response('one file of Deno'))

const text = Deno.readTextFileSync('built.txt')
export default { fetch: () => new Response(`${text} before it is served`) }

export default {
  fetch: () => new Response('exported'),
} satisfies Deno.ServeDefaultExport

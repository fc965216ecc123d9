import { greeting } from '@acme/words'

Deno.serve(() => new Response(greeting))

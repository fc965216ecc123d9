import { words } from 'words'
import '@std/path'

Deno.serve(() => new Response(words))

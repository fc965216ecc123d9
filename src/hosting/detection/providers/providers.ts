import type { Provider } from '../candidate.ts'
import { deno } from './deno.ts'
import { go } from './go.ts'
import { java } from './java.ts'
import { node } from './node.ts'
import { php } from './php.ts'
import { python } from './python.ts'
import { ruby } from './ruby.ts'
import { rust } from './rust.ts'
import { staticFiles } from './static.ts'

/** All languages. Their order decides between candidates of the same strength. */
export const PROVIDERS: readonly Provider[] = [deno, node, python, go, rust, java, php, ruby, staticFiles]

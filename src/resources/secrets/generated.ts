import type { AppPlan, GeneratedSecret } from '../../hosting/app-runtime/plan.ts'
import { systemRandom } from '../../runtime/random.ts'

/** Bytes of a secret that berth makes: the length of a key of AES-256, as Laravel wants it. */
const BYTES = 32

/** Returns values for the secrets of an app that berth makes and that are not among the given ones. */
export function generateSecrets(
  { env }: Pick<AppPlan, 'env'>,
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, { required, generated }]) =>
      !required || generated === undefined || name in given ? [] : [[name, generate(generated)]],
    ),
  )
}

function generate(form: GeneratedSecret): string {
  const bytes = Buffer.from(systemRandom.bytes(BYTES))
  return form === 'hex' ? bytes.toString('hex') : `base64:${bytes.toString('base64')}`
}

import type { OperationObject } from '../../src/contract/openapi/model.ts'
import { once } from '../../src/runtime/once.ts'

/** What checks answers, made when the first one is checked. */
const checker = once(async () => {
  const [{ describeControl }, { CONTROL_OPERATIONS, listOperations, OperationIndex }, { schemaChecker }] =
    await Promise.all([
      import('../../src/instance/describe.ts'),
      import('../../src/contract/operations.ts'),
      import('./openapi-rules.ts'),
    ])
  const document = await describeControl()
  const { schemas } = document.components
  const index = new OperationIndex(listOperations(CONTROL_OPERATIONS))
  const ajv = schemaChecker()
  const compiled = new Map<object, ReturnType<typeof ajv.compile>>()
  return {
    operation(method: string, path: string): OperationObject | undefined {
      const found = index.match(method, path.replace(/\?.*/s, ''))
      return found && document.paths[found.path]?.[method.toLowerCase()]
    },
    fits(schema: object, body: unknown): string | null {
      const validate = compiled.get(schema) ?? ajv.compile({ components: { schemas }, ...schema })
      compiled.set(schema, validate)
      return validate(body) ? null : ajv.errorsText(validate.errors)
    },
  }
})

/**
 * Checks that an answer of the control API is what its document says: a status that the operation lists,
 * with a body of that shape. Unknown paths and methods are not operations of it.
 *
 * @throws Error where it is not
 */
export async function checkControlAnswer(
  method: string,
  path: string,
  { status, body }: { status: number; body: unknown },
): Promise<void> {
  const { operation, fits } = await checker()
  const found = operation(method, path)
  if (!found) return
  const documented = found.responses[status]
  if (!documented)
    throw new Error(`${found.operationId} answered ${status}, which its document does not list.`)
  const schema = documented.content?.['application/json']?.schema
  const wrong = schema ? fits(schema, body) : null
  if (wrong !== null)
    throw new Error(`The answer ${status} of ${found.operationId} is not as documented: ${wrong}`)
}

import { Elysia } from 'elysia'
import type { DocumentFacts } from '../../contract/openapi/facts.ts'
import { openApiRoutes } from '../../contract/openapi/routes.ts'
import { ERROR_MEANINGS } from '../../contract/operation.ts'
import { referenceRoutes } from '../../contract/reference/routes.ts'
import { CONTROL_TAGS } from '../../contract/tags.ts'
import { originOf } from '../../http/origin.ts'
import { pageViewer } from '../../signin/session/browser-requests.ts'
import type { ControlParts } from './parts.ts'

/** The parts of the control API's document besides its operations. */
export const CONTROL_DOCUMENT: DocumentFacts = {
  info: {
    title: 'berth, control API',
    version: '0.1.0',
    contact: { name: 'The authors of berth' },
    license: { name: 'MIT', identifier: 'MIT' },
    description: `Operates and tests one running instance. Clients of the API never need it: what they call is
described [apart](/docs).

**Credentials.** Every call but those that say otherwise takes the instance's admin token as a bearer token; API keys are
refused. \`berth run\` gives it to the tests as \`BERTH_ADMIN_TOKEN\`, \`berth env\` prints it, and it is in \`credentials.json\` of the
data directory.

**Who may call.** Callers on this machine, unless berth was started with \`--expose-control\`; programs, and no page of a
browser but the instance's own. Checks come in this order: the header \`Host\` (403), the caller's address (403), the header
\`Origin\` (403), the path (404), the method (405), the credential (401), the shape of the request (400), the operation.

The body of a **failure** is \`{error, message}\`: a code for programs and a sentence for people.`,
  },
  operationId: (id) => id.replace(/^control\./, ''),
  securitySchemes: {
    adminToken: {
      type: 'http',
      scheme: 'bearer',
      description: 'The admin token of the instance, sent as `Authorization: Bearer admin_…`.',
    },
  },
  security: [{ adminToken: [] }],
  tags: CONTROL_TAGS,
  parameters: {},
  failures: {
    ...ERROR_MEANINGS,
    401: 'The admin token is missing or wrong.',
    403: 'The caller is on another machine, or a page of elsewhere.',
  },
  added: ({ usualCredential, body, input }) => ({
    parameters: [],
    failures: [
      ...(input ? [400 as const] : []),
      ...(usualCredential ? [401 as const] : []),
      403,
      ...(body ? [413 as const, 415 as const] : []),
      503,
    ],
  }),
}

/** Serves `/_berth/openapi.json` and `/_berth/docs`, without a credential. */
export const documentRoutes = ({ whole: app, commands, host, services }: ControlParts) =>
  new Elysia({ name: 'berth/control-documents' })
    .use(openApiRoutes({ app, path: '/_berth/openapi.json', facts: CONTROL_DOCUMENT }))
    .use(
      referenceRoutes({
        path: '/_berth/docs',
        title: 'Control API',
        document: '/_berth/openapi.json',
        credential: 'Admin token',
        app,
        facts: CONTROL_DOCUMENT,
        commands,
        origin: (request) => originOf(request, host),
        viewer: pageViewer({ ...services, host, sessions: services.signIn.sessions }, '/_berth/docs', true),
      }),
    )

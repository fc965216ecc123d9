import { Elysia, status, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import { notFound } from '../../errors.ts'
import { originOf } from '../../http/origin.ts'
import { RETURN_PATH, RETURN_PATH_LIMIT } from '../../http/return-path.ts'
import { toIso } from '../../runtime/clock.ts'
import type { ControlParts } from './parts.ts'

/** The target of a sign-in link. */
const SignInLinkCreate = t.Object(
  {
    account_id: t.Optional(t.String({ description: 'Whom it signs in; the first account where left out.' })),
    return_to: t.Optional(
      t.String({
        pattern: RETURN_PATH,
        maxLength: RETURN_PATH_LIMIT,
        title: 'a path of this instance, such as /access',
        description:
          'The page that it leads to, a path of this instance; the dashboard, `/`, where left out.',
      }),
    ),
  },
  { $id: 'SignInLinkCreate', additionalProperties: false },
)

const SignInLink = t.Object(
  {
    url: t.String({ format: 'uri', description: 'Signs in the browser that opens it first.' }),
    expires_at: t.String({ format: 'date-time' }),
  },
  { $id: 'SignInLink' },
)

/** A link that is made to be opened at once is valid for five minutes. */
const LIFETIME_MS = 5 * 60_000

/** `/_berth/sign-in-links`: links that sign a browser in, each once. */
export const signInLinksRoutes = ({ access, services: { keys, signIn }, host }: ControlParts) =>
  new Elysia({ prefix: '/_berth/sign-in-links' }).use(access).post(
    '',
    ({ body, request }) => {
      const { account_id: accountId = null, return_to: returnTo } = body ?? {}
      if (accountId !== null && !keys.hasAccount(accountId)) throw notFound(`The account "${accountId}"`)
      const target = { accountId, ...(returnTo !== undefined && { returnTo }) }
      const { path, expiresAt } = signIn.links.issue(target, LIFETIME_MS)
      return status(201, { url: `${originOf(request, host)}${path}`, expires_at: toIso(expiresAt) })
    },
    operation(
      'control.signInLinks.create',
      {
        access: 'admin',
        summary: 'Make a link that signs a browser in, once',
        description:
          'The link is valid for five minutes and works once. It leads to the address to which this request was sent. A browser that one for the first account signs in may use the control API, too.',
        secret: true,
        success: { 201: SignInLink },
        errors: [404],
      },
      { body: t.Optional(SignInLinkCreate) },
    ),
  )

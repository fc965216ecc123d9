import type { Page } from 'playwright-core'
import type { TestBerth } from './berth.ts'
import { authorizePath, CHALLENGE, registerClient } from './oauth.ts'
import { linkOf } from './visitor.ts'

/** A page that people see, and the way there. */
export interface SeenPage {
  name: string
  heading: string
  /** Brings a browser that is not signed in to the page. */
  open: (page: Page, berth: TestBerth) => Promise<unknown>
}

/** Signs a browser in. @param path where it goes then */
export const signInTo = async (page: Page, berth: TestBerth, path = '/access'): Promise<unknown> =>
  page.goto(await linkOf(berth, undefined, path))

/** Makes a key with a long label that reaches one server, and returns its id. */
async function keyOf(berth: TestBerth): Promise<string> {
  const wish = { label: 'Continuous integration on the shop', allowed_server_ids: [await berth.server()] }
  return (await berth.call('POST', '/keys', wish)).body.id
}

/** Every page on which people sign in, consent, manage what has access or read: each is checked in a browser. */
export const SEEN_PAGES: readonly SeenPage[] = [
  { name: 'sign-in', heading: 'Sign in', open: (page, berth) => page.goto(`${berth.info.base_url}/signin`) },
  {
    name: 'sign-in with a wrong key',
    heading: 'Sign in',
    async open(page, berth) {
      await page.goto(`${berth.info.base_url}/signin`)
      await page.getByLabel('API key').fill('sk_live_wrong')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('alert').waitFor()
    },
  },
  {
    name: 'a link that is used',
    heading: 'This link is not valid any more',
    open: (page, berth) => page.goto(`${berth.info.base_url}/signin/link/used`),
  },
  {
    name: 'an address that is none',
    heading: 'There is no such page',
    open: (page, berth) => page.goto(`${berth.info.base_url}/access/none`),
  },
  { name: 'access', heading: 'Access', open: (page, berth) => signInTo(page, berth) },
  {
    name: 'access, with more in it',
    heading: 'Access',
    async open(page, berth) {
      await keyOf(berth)
      await linkOf(berth).then(fetch)
      await signInTo(page, berth, '/access?done=key-deleted')
    },
  },
  {
    name: 'a key that is revealed',
    heading: 'API key Continuous integration on the shop',
    async open(page, berth) {
      const id = await keyOf(berth)
      await signInTo(page, berth)
      await page.locator(`form[action="/access/keys/${id}/reveal"] button`).click()
      await page.getByText('sk_live_').waitFor()
    },
  },
  {
    name: 'a key that is about to be deleted',
    heading: 'Delete the API key Continuous integration on the shop?',
    open: async (page, berth) => signInTo(page, berth, `/access/keys/${await keyOf(berth)}/delete`),
  },
  {
    name: 'a key that cannot be deleted',
    heading: 'That did not work',
    async open(page, berth) {
      const { body } = await berth.control('POST', '/accounts', { label: 'Two keys' })
      const own = { authorization: `Bearer ${body.api_key}` }
      const [first] = (await berth.call('GET', '/keys', undefined, own)).body.keys
      await berth.call('POST', '/keys', { label: 'second' }, own)
      await page.goto(await linkOf(berth, body.id, '/access'))
      await page.getByRole('link', { name: 'Delete the key second' }).click()
      // Meanwhile it becomes the last one.
      await berth.call('DELETE', `/keys/${first.id}`, undefined, own)
      await page.getByRole('button', { name: 'Delete the key' }).click()
      await page.getByText('is the last one').waitFor()
    },
  },
  {
    name: 'signed out',
    heading: 'Sign in',
    async open(page, berth) {
      await signInTo(page, berth)
      await page.getByRole('button', { name: 'Sign out', exact: true }).click()
      await page.getByRole('status').waitFor()
    },
  },
  {
    name: 'consent to a program',
    heading: 'Let a program in?',
    async open(page, berth) {
      await berth.server({ task: 'web shop' })
      await signInTo(page, berth, authorizePath(await registerClient(berth.info.base_url)))
    },
  },
  {
    name: 'consent to a terminal',
    heading: 'Sign in a terminal?',
    open: (page, berth) =>
      signInTo(
        page,
        berth,
        `/cli/authorize?${new URLSearchParams({ challenge: CHALLENGE, host: 'laptop' })}`,
      ),
  },
  {
    name: 'consent to a program that is not known',
    heading: 'This request for access cannot be answered',
    open: (page, berth) => signInTo(page, berth, '/oauth/authorize?client_id=none'),
  },
  { name: 'guide', heading: 'Guide', open: (page, berth) => page.goto(`${berth.info.base_url}/docs/guide`) },
  {
    name: 'guide with wide tables',
    heading: 'The command line',
    open: (page, berth) => page.goto(`${berth.info.base_url}/docs/guide/command-line`),
  },
  {
    name: 'search in the guide',
    heading: 'Guide',
    async open(page, berth) {
      await page.goto(`${berth.info.base_url}/docs/guide`)
      await page.getByLabel('Search the guide').fill('idempotency key')
      await page.getByRole('button', { name: 'Search' }).click()
      await page.getByRole('status').waitFor()
    },
  },
]

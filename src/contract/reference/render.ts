import { type Html, html, type Part } from '../../http/pages/html.ts'
import type { OperationAccess } from '../operation.ts'
import { code, inline, json, prose } from './markup.ts'
import type {
  ApiReference,
  ReferenceEvent,
  ReferenceFailure,
  ReferenceGroup,
  ReferenceOperation,
  ReferenceParameter,
  ReferenceResponse,
} from './reference.ts'
import { samplesOf } from './samples.ts'
import type { Field, Shape } from './shape.ts'

/** What a caller needs for an operation. */
const ACCESS: Readonly<Record<OperationAccess, string>> = {
  public: 'no credential',
  resource: 'API key',
  account: 'API key of the whole account',
  admin: 'admin token',
}

/** Renders the links to all operations, in their groups. */
export const contents = ({ groups, events }: ApiReference): Html => html`<ul>
${groups.map(
  ({ name, anchor, operations }) => html`<li><a class="group" href="#${anchor}">${name}</a>
<ul>
${operations.map(
  ({ id, method, summary }) =>
    html`<li><a href="#${id}"><span>${summary}</span> ${methodTag(method)}</a></li>\n`,
)}</ul></li>
`,
)}${
  events.length > 0 &&
  html`<li><a class="group" href="#events">Webhook events</a>
<ul>
${events.map(({ name, anchor }) => html`<li><a href="#${anchor}"><span>${name}</span></a></li>\n`)}</ul></li>\n`
}<li><a class="group" href="#errors">Errors</a></li>
</ul>`

/**
 * Renders the groups with their operations, then the events and the failures. Each operation and event is a line that a
 * reader opens.
 *
 * @param isOpen whether they are open at first
 */
export const body = (
  { groups, events, failures }: ApiReference,
  isOpen: boolean,
): Html => html`${groups.map((group) => groupSection(group, isOpen))}
${events.length > 0 && eventsSection(events, isOpen)}
<section class="group" aria-labelledby="errors">
<h2 id="errors">Errors</h2>
<p class="quiet">The body of each is <code>{"error": CODE, "message": SENTENCE}</code>.</p>
${failureList(failures)}
</section>`

const methodTag = (method: string): Html =>
  html`<span class="method ${method.toLowerCase()}">${method}</span>`

const groupSection = (
  { name, anchor, description, guide, operations }: ReferenceGroup,
  isOpen: boolean,
): Html => html`
<section class="group" aria-labelledby="${anchor}">
<h2 id="${anchor}">${name}</h2>
<p class="quiet">${inline(description)} <a href="${guide}">How it is used<span class="hidden">: ${name}</span></a></p>
${operations.map((operation) => operationSection(operation, isOpen))}</section>
`

function operationSection(operation: ReferenceOperation, isOpen: boolean): Html {
  const { id, method, path, access, summary, description, parameters, request, stream } = operation
  const of = (place: ReferenceParameter['in']) => parameters.filter((one) => one.in === place)
  return html`
<section class="operation" id="${id}" aria-labelledby="${id}-title" data-method="${method}" data-path="${path}"${operation.isSocket && html` data-socket`}${operation.takes !== undefined && html` data-takes="${operation.takes}"`}${operation.body !== undefined && html` data-body="${JSON.stringify(operation.body, null, 2)}"`}>
<details${isOpen && html` open`}><summary><h3 id="${id}-title">${summary}</h3> <span class="route">${methodTag(method)} <code>${pathParts(path)}</code> <span class="access">${ACCESS[access]}</span></span></summary>
<div class="columns"><div class="facts">
${prose(description)}
${fieldSection('Path', of('path'))}
${fieldSection('Query', of('query'))}
${request && html`<h4>Body <span class="type">${request.types}${!request.required && ', may be missing'}</span></h4>${shapeBody(request.shape, true)}`}
${fieldSection('Headers', of('header'))}
<h4>Responses</h4>
<ul class="responses">
${operation.successes.map(successItem)}${stream !== undefined && html`<li><span class="status">200</span> <code>Accept: text/event-stream</code> ${inline(stream)}</li>\n`}</ul>
${failuresOf(operation)}
</div>
<div class="samples">
${samples(operation)}
${!operation.isSocket && html`<p class="actions"><button type="button" class="try plain">Try it<span class="hidden">: ${summary}</span></button></p>`}
${operation.successes.map((one) => exampleOf(one, id))}
</div></div></details>
</section>
`
}

/** Lets a path break after its slashes. */
const pathParts = (path: string): Html =>
  html`${path
    .split('/')
    .slice(1)
    .map((part) => html`/<wbr>${part}`)}`

const fieldSection = (name: string, parameters: readonly ReferenceParameter[]): Part =>
  parameters.length > 0 &&
  html`<h4>${name}</h4><ul class="fields">${parameters.map((one) => fieldItem(one, html` data-in="${one.in}"`))}</ul>\n`

const fieldItem = (
  { name, required, description, shape }: Field,
  more: Part = null,
  isOpen = false,
): Html => html`
<li${more}><code class="field">${name}</code> <span class="type">${shape.type}</span>${required && html` <span class="required">required</span>`}
${description !== '' && html`<p>${inline(description)}</p>`}${limits(shape)}${nested(shape, isOpen)}</li>`

const limits = ({ limits: phrases, values }: Shape): Part => [
  values.length > 0 &&
    html`<p class="values">${values.length > 1 ? 'One of ' : 'Always '}${values.map((value) => html`<code>${value}</code> `)}</p>`,
  phrases.length > 0 && html`<p class="limits">${phrases.join(' · ')}</p>`,
]

/**
 * The fields of a value that is itself a field, which a reader can open and close.
 *
 * @param isOpen whether they are open at first; a value that only wraps another is open with that
 */
function nested(shape: Shape, isOpen = false): Part {
  const count = shape.fields.length || shape.alternatives.length
  return (
    count > 0 &&
    html`<details${isOpen && html` open`}><summary>${count} ${shape.fields.length > 0 ? 'field' : 'form'}${count !== 1 && 's'}</summary>${shapeBody(shape, false, isOpen && shape.fields.length === 1)}</details>`
  )
}

/**
 * The fields of a shape, or of each of its alternatives.
 *
 * @param isWhole whether it is a whole body, which says its own type if it has no fields
 * @param isOpen whether the fields of its fields are open at first
 */
function shapeBody(shape: Shape, isWhole: boolean, isOpen = false): Html {
  const { fields, alternatives, type } = shape
  return html`${
    isWhole && fields.length + alternatives.length === 0
      ? html`<p class="type">${type}</p>${limits(shape)}`
      : fields.length > 0 &&
        html`<ul class="fields">${fields.map((field) => fieldItem(field, null, isOpen))}</ul>`
  }${alternatives.map((one) => html`<p class="type">Either ${kindOf(one)}</p><ul class="fields">${one.fields.map((field) => fieldItem(field))}</ul>`)}`
}

/** Names an alternative by the constant that tells it from the others. */
function kindOf({ fields, type }: Shape): Part {
  const telling = fields.find(({ shape }) => shape.values.length === 1)
  return telling === undefined
    ? type
    : html`<code>${telling.name}</code> is <code>${telling.shape.values[0]}</code>`
}

const successItem = ({ status, description, gives, shape }: ReferenceResponse): Html => html`
<li><span class="status ok">${status}</span> ${inline(description)} <span class="type">${gives ?? shape?.type}</span>
${shape && nested(shape, true)}</li>
`

const failuresOf = ({ failures, id }: ReferenceOperation): Part =>
  failures.length > 0 &&
  html`<details class="failures"><summary>Errors ${failures.map(({ status }) => status).join(', ')}<span class="hidden"> of ${id}</span></summary>
${failureList(failures)}</details>`

const failureList = (failures: readonly ReferenceFailure[]): Html => html`<ul class="responses">
${failures.map(
  ({ status, description, codes }) =>
    html`<li><span class="status">${status}</span> ${inline(description)} ${codes.map((one) => html`<code>${one}</code> `)}</li>\n`,
)}</ul>`

function samples(operation: ReferenceOperation): Html {
  const all = samplesOf(operation)
  return html`<fieldset class="tabs"><legend class="hidden">Request of ${operation.id}</legend>${all.map(
    ({ label }, index) =>
      html`<label><input type="radio" name="sample-${operation.id}" value="${label}"${index === 0 && html` checked`}>${label}</label>`,
  )}</fieldset>
${all.map(({ label, text }) => codeBlock(`sample ${label}`, `${label} of ${operation.id}`, code(text)))}`
}

/** A block of code with a button that copies it. */
const codeBlock = (kind: string, about: string, content: Html): Html =>
  html`<div class="code ${kind}"><pre><code>${content}</code></pre><button type="button" class="copy">Copy<span class="hidden"> ${about}</span></button></div>\n`

const exampleOf = ({ status, example }: ReferenceResponse, id: string): Part =>
  example !== undefined &&
  html`<p class="caption"><span class="status ok">${status}</span> Example</p>${codeBlock('example', `the response of ${id}`, json(example))}`

const eventsSection = (events: readonly ReferenceEvent[], isOpen: boolean): Html => html`
<section class="group" aria-labelledby="events">
<h2 id="events">Webhook events</h2>
<p class="quiet">What berth posts to the URL of a <a href="#webhooks.create">webhook</a> that is subscribed. The <a href="/docs/guide/webhooks">guide</a> shows how to check the signature.</p>
${events.map(
  ({
    name,
    anchor,
    shape,
  }) => html`<section class="operation event" id="${anchor}" aria-labelledby="${anchor}-title">
<details${isOpen && html` open`}><summary><h3 id="${anchor}-title"><code>${name}</code></h3></summary>
<div class="facts">${shapeBody(shape, true)}</div></details></section>
`,
)}</section>`

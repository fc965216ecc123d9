/** Berth's mark (http/pages/mark.svg) in the colours of the page. */
export const Mark = () => (
  <svg class="logo" viewBox="0 0 16 16" fill="none" aria-hidden="true">
    <path
      class="quay"
      d="M2.25 4.5v6.25a3 3 0 0 0 3 3h5.5a3 3 0 0 0 3-3V4.5"
      stroke-width="2"
      stroke-linecap="round"
    />
    <path
      class="boat"
      d="M8 .7c1.9 1.8 2.7 3.7 2.7 5.7 0 1.5-.15 2.6-.45 3.7a.9.9 0 0 1-.87.65H6.62a.9.9 0 0 1-.87-.65c-.3-1.1-.45-2.2-.45-3.7 0-2 .8-3.9 2.7-5.7Z"
    />
  </svg>
)

<p>Hello</p>

# typed: true
# frozen_string_literal: true

# Installs the executable of berth.
class Berth < Formula
  desc "Local server-provisioning and agent-task API in one executable"
  homepage "https://github.com/{{owner}}/berth"
  version "{{version}}"
  license "MIT"

{{places}}
  def install
    bin.install "berth"
    generate_completions_from_executable(bin/"berth", "completion")
  end

  service do
    run [opt_bin/"berth", "serve", "--data", var/"berth"]
    keep_alive successful_exit: false
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/berth version")
    system bin/"berth", "run", "--", "true"
  end
end

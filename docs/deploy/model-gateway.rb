# For a tap of your own: `npm pack` makes the package, its address and checksum go here.
class ModelGateway < Formula
  desc "Declarative gateway in front of llama.cpp's llama-server"
  homepage "https://github.com/OWNER/model-gateway"
  url "https://github.com/OWNER/model-gateway/releases/download/v0.1.0/model-gateway-0.1.0.tgz"
  sha256 "SHA256-OF-THE-PACKAGE"
  license "MIT"

  depends_on "llama.cpp"
  depends_on "node"

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink libexec.glob("bin/*")
  end

  service do
    run [opt_bin/"model-gateway", "serve", "--state", var/"model-gateway"]
    keep_alive successful_exit: false
    working_dir var
    environment_variables PATH: std_service_path_env
    log_path var/"log/model-gateway.log"
    error_log_path var/"log/model-gateway.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/model-gateway version")
  end
end

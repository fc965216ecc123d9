{
  # A flake of a directory: the address of the repository ends with ?dir=scripts/packaging/nix.
  description = "berth, a local server-provisioning and agent-task API in one executable";

  inputs.nixpkgs.url = "nixpkgs";

  outputs = { self, nixpkgs }:
    let
      # Version, addresses and hashes of the last release, written by scripts/release of that release.
      release =
        if builtins.pathExists ./release.json
        then builtins.fromJSON (builtins.readFile ./release.json)
        else throw "This commit names no release of berth: take that of a newer one, or build berth with scripts/build.";
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = nixpkgs.lib.genAttrs systems;
    in
    {
      packages = each (system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
          source = release.systems.${system};
        in
        {
          default = pkgs.stdenv.mkDerivation {
            pname = "berth";
            version = release.version;
            src = pkgs.fetchurl { inherit (source) url sha256; };
            # The executable ends with its program, which stripping removes.
            dontStrip = true;
            # Only the loader is another one on NixOS; it needs the C library alone.
            nativeBuildInputs = pkgs.lib.optional pkgs.stdenv.isLinux pkgs.patchelf;
            installPhase = ''
              install -D berth $out/bin/berth
            '' + pkgs.lib.optionalString pkgs.stdenv.isLinux ''
              patchelf --set-interpreter ${pkgs.stdenv.cc.bintools.dynamicLinker} $out/bin/berth
            '';
            meta = {
              description = "Local server-provisioning and agent-task API";
              license = pkgs.lib.licenses.mit;
              mainProgram = "berth";
              platforms = systems;
            };
          };
        });
      apps = each (system: {
        default = { type = "app"; program = "${self.packages.${system}.default}/bin/berth"; };
      });
    };
}

// The manifest is the one that the server wrote into the page; nothing is read from the address.
(() => {
  const { manifest, language } = document.body.dataset;
  const data = { manifest: new URL(manifest, location.origin).href, embedded: false, locales: [{ name: language }] };
  const uv = UV.init("uv", data);
  uv.on("configure", ({ config, cb }) => cb({ ...config, options: { ...config.options, footerPanelEnabled: true } }));
})();

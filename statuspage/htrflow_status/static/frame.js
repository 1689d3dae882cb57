// The manifest is the one that the server wrote into the page; nothing is read from the address.
(() => {
  const { manifest, language } = document.body.dataset;
  const data = { manifest: new URL(manifest, location.origin).href, embedded: false, locales: [{ name: language }] };
  const uv = UV.init("uv", data);
  // Nothing dropped on the viewer is opened, and there is nothing to embed: no other site may hold this frame.
  const options = { dropEnabled: false };
  const footer = { options: { shareEnabled: false, embedEnabled: false } };
  const modules = { footerPanel: footer, mobileFooterPanel: footer, searchFooterPanel: footer };
  uv.on("configure", ({ cb }) => cb({ options, modules }));
  addEventListener("resize", () => uv.resize());
})();

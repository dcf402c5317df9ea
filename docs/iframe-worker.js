// Search without a server. Browsers start no workers for pages that are opened as files, and the theme's search is a
// worker. For such pages this class takes the place of Worker and runs the same script in a hidden frame. The theme's
// script looks for its name, and its build for that of this file (the plugin `offline`).
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    // Some browsers replace an empty document later on, but not one that was written.
    frame.contentDocument.write("<!doctype html><title>search</title>");
    frame.contentDocument.close();
    this.scope = frame.contentWindow;
    this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    this.scope.importScripts = async (...urls) => {
      for (const each of urls) await this.load(each);
    };
    this.loaded = this.load(url);
  }

  load(url) {
    const script = this.scope.document.createElement("script");
    script.src = url;
    return new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = reject;
      this.scope.document.head.append(script);
    });
  }

  async postMessage(data) {
    await this.loaded;
    this.scope.dispatchEvent(new MessageEvent("message", { data }));
  }
}

if (location.protocol === "file:") window.Worker = window.IFrameWorker = IFrameWorker;

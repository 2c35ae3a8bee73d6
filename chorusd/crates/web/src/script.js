// Fetches parts of the pages again when something changes, follows a conversation, searches as one types, and handles keys.
// Everything that it shows was made by the server, or is set as text.
'use strict';
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const SIGNED_OUT = 'not signed in: chorusctl web was started again; open the link that it printed (what you wrote stays)';
  const UNREACHABLE = 'chorusctl web cannot be reached; trying again';
  const SCRIPT = { 'X-Chorus-Script': '1' };
  const body = document.body;
  // The path that all pages are below.
  const root = body.dataset.root || '';

  // The answer to the link.
  const go = find('[data-go]');
  if (go) {
    location.replace(go.dataset.go);
    return;
  }

  // Ages grow.
  const age = (seconds) => {
    const units = [[60, 1, 's'], [3600, 60, 'min'], [86400, 3600, 'h'], [5184000, 86400, 'days'], [63072000, 2592000, 'months']];
    if (seconds < 10) return 'now';
    const [, size, name] = units.find(([limit]) => seconds < limit) || [0, 31536000, 'years'];
    const count = Math.floor(seconds / size);
    return `${count} ${name === 'days' && count === 1 ? 'day' : name}`;
  };
  const updateAges = (root = document) => all('time.age', root).forEach((time) => {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    if (!Number.isNaN(seconds)) time.textContent = age(seconds);
  });
  setInterval(() => updateAges(), 30000);

  const parse = (text) => new DOMParser().parseFromString(text, 'text/html');
  const fetchPage = async (address, options = {}) => {
    const response = await fetch(address, { headers: SCRIPT, ...options });
    if (response.status === 401) say(SIGNED_OUT);
    return response;
  };

  // A click needs the same button at its end: what is pressed is not changed under the user's hands.
  let pressed = null;
  let isBehind = false;
  document.addEventListener('pointerdown', (event) => { pressed = event.target; });
  ['pointerup', 'pointercancel'].forEach((name) => document.addEventListener(name, () => {
    // The click comes after it.
    setTimeout(() => {
      pressed = null;
      if (isBehind) refresh();
      isBehind = false;
    });
  }));

  // Replaces what has changed, at most once a second: the parts that an event of this type concerns, or all.
  let refreshing = false;
  let due = new Set();
  let refreshedAt = 0;
  const sourceOf = (region) => region.dataset.src || location.pathname + location.search;
  const concerns = (type, region) =>
    !type || !region.dataset.on || region.dataset.on.split(' ').some((prefix) => type.startsWith(prefix));
  const refresh = async (type) => {
    all('[data-live]').filter((region) => concerns(type, region)).forEach((region) => due.add(sourceOf(region)));
    if (refreshing) return;
    refreshing = true;
    while (due.size) {
      await new Promise((done) => setTimeout(done, Math.max(150, refreshedAt + 1000 - Date.now())));
      const sources = due;
      due = new Set();
      refreshedAt = Date.now();
      for (const source of sources) {
        try {
          const response = await fetchPage(source);
          if (!response.ok) continue;
          const page = parse(await response.text());
          for (const region of all('[data-live]')) {
            if (sourceOf(region) !== source) continue;
            const fresh = page.getElementById(region.id);
            if (fresh) updateAges(fresh);
            isBehind ||= region.contains(pressed);
            if (fresh && !region.contains(pressed)) replace(region, fresh);
          }
        } catch { /* The line above says that the connection is lost. */ }
      }
      updateAges();
    }
    refreshing = false;
  };
  // Makes a part like a newer one, by its elements: what is the same, is written in or has the focus stays.
  const keyOf = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeName;
    const name = node.id || node.getAttribute('href') || find('[href]', node)?.getAttribute('href') || node.getAttribute('name') || node.getAttribute('class');
    return `${node.nodeName} ${name} ${node.matches('button') ? node.value : ''}`;
  };
  const OWN = ['open', 'disabled', 'tabindex'];
  const morph = (old, fresh) => {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    // What went wrong stays to be read.
    if (old.isEqualNode(fresh) || old.matches('.problem')) return;
    for (const { name, value } of [...fresh.attributes]) {
      if (old.getAttribute(name) !== value && !OWN.includes(name)) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !OWN.includes(name)) old.removeAttribute(name);
    const known = new Map();
    for (const child of old.childNodes) known.set(keyOf(child), [...known.get(keyOf(child)) || [], child]);
    const pairs = [...fresh.childNodes].map((child) => [known.get(keyOf(child))?.shift(), child]);
    [...known.values()].flat().forEach(leave);
    let at = old.firstChild;
    for (const [match, child] of pairs) {
      while (at?.nodeType === Node.ELEMENT_NODE && at.matches('.decided')) at = at.nextSibling;
      if (match && match === at) at = at.nextSibling;
      else old.insertBefore(match || document.adoptNode(child), at);
      if (match) morph(match, child);
    }
  };
  // An approval that was decided keeps its place, so that no other one is where somebody is about to press.
  const answered = new Set();
  const leave = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE || !node.matches('.approval, .decided')) return node.remove();
    if (node.matches('.decided')) return;
    const line = document.createElement('p');
    line.className = 'decided';
    line.style.minHeight = `${node.offsetHeight}px`;
    line.style.margin = getComputedStyle(node).margin;
    line.style.boxSizing = 'border-box';
    line.textContent = answered.has(node.id) ? 'answered' : 'answered elsewhere, or expired';
    node.replaceWith(line);
  };
  const replace = (region, fresh) => {
    const follow = region.id === 'state' && messages?.isConnected && atEnd();
    const focused = region.contains(document.activeElement) ? items().indexOf(document.activeElement) : -1;
    morph(region, fresh);
    // Without another one, their places are not needed.
    if (!find('.approval', region)) all('.decided', region).forEach((line) => line.remove());
    if (focused >= 0 && !region.contains(document.activeElement)) items()[Math.min(focused, items().length - 1)]?.focus();
    if (follow) toEnd();
  };

  // A button that moved or appeared just now is not the one that the user wanted to press.
  const SETTLED = 700;
  let places = new Map();
  const measure = (isFirst) => {
    const seen = new Map();
    for (const button of all('.answers button')) {
      const { left, top } = button.getBoundingClientRect();
      const place = `${Math.round(left + scrollX)} ${Math.round(top + scrollY)}`;
      const before = places.get(button);
      seen.set(button, before?.place === place ? before : { place, at: isFirst ? -SETTLED : performance.now() });
    }
    places = seen;
  };
  measure(true);
  setInterval(() => measure(), 100);
  document.addEventListener('click', (event) => {
    const button = event.target.closest?.('.answers button');
    if (!button || event.detail === 0) return;
    measure();
    if (performance.now() - places.get(button).at >= SETTLED) return;
    event.preventDefault();
    find('.problem', button.form).textContent = 'this has just moved here: press again';
  }, true);

  // A conversation that grows.
  const messages = find('#messages[data-follow]');
  const partial = find('#partial');
  const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 160;
  const toEnd = () => {
    const before = scrollY;
    scrollTo(0, document.documentElement.scrollHeight);
    // The page moved, and not the user.
    if (scrollY !== before) places.forEach((place) => { place.at = performance.now(); });
  };
  let step = null;
  const write = (text) => {
    if (!partial || !text) return;
    const follow = atEnd();
    if (!step) {
      step = document.createElement('article');
      step.className = 'assistant partial';
      all('.bad', partial).forEach((line) => line.remove());
      partial.append(step);
    }
    step.append(text);
    if (follow) toEnd();
  };
  const note = (text, kind) => {
    if (!partial || !text) return;
    const follow = atEnd();
    const line = document.createElement('p');
    line.className = `line ${kind}`;
    line.textContent = text;
    partial.append(line);
    if (follow) toEnd();
  };
  // What is shown of a turn that has ended, which the messages have.
  let ended = [];
  const endTurn = () => {
    step = null;
    if (partial) ended.push(...[...partial.children].filter((child) => !child.matches('.bad')));
  };
  const letters = (node) => node.textContent.replace(/[^\p{L}\p{N}]/gu, '');
  // Removes what is written completely and has its message already, which may arrive first.
  const settle = () => {
    if (!messages || !partial) return;
    const articles = all('article', messages);
    const since = articles.slice(articles.findLastIndex((article) => article.matches('.user')) + 1).map(letters);
    all('.partial', partial).forEach((child) => {
      if (child !== step && since.some((written) => written.includes(letters(child).slice(0, 40)))) child.remove();
    });
  };
  let reading = false;
  let unread = false;
  const readMessages = async () => {
    if (!messages) return;
    unread = true;
    if (reading) return;
    reading = true;
    while (unread) {
      unread = false;
      // What was written up to now is in the messages.
      const written = partial ? [...partial.children].filter((child) => child !== step && !child.matches('.bad')) : [];
      const done = ended;
      ended = [];
      const query = new URLSearchParams({ after: messages.dataset.count });
      if (messages.dataset.context) query.set('context', messages.dataset.context);
      if (messages.dataset.last) query.set('last', messages.dataset.last);
      try {
        const response = await fetchPage(`${messages.dataset.follow}?${query}`);
        if (response.status === 409) { keepDraft(); location.reload(); return; }
        if (!response.ok) break;
        const context = response.headers.get('X-Context');
        if (context) messages.dataset.context = context;
        const last = response.headers.get('X-Last');
        if (last) messages.dataset.last = last;
        const fresh = all('article', parse(await response.text()));
        const follow = atEnd();
        done.forEach((child) => child.remove());
        if (fresh.length) {
          find('#empty')?.remove();
          messages.append(...fresh.map((article) => document.adoptNode(article)));
          messages.dataset.count = Number(messages.dataset.count) + fresh.length;
          written.forEach((child) => child.remove());
          if (Number(messages.dataset.count) < Number(response.headers.get('X-Total'))) unread = true;
          if (follow) toEnd();
        }
        settle();
      } catch { break; }
    }
    reading = false;
  };
  const onTurn = ({ kind, text }) => {
    switch (kind) {
      case 'attached': partial?.replaceChildren(); step = null; readMessages(); break;
      case 'text': write(text); break;
      case 'tool': step = null; settle(); note(text, 'tool'); readMessages(); refresh(); break;
      case 'note': note(text, 'note'); break;
      case 'ended': endTurn(); if (text) note(text, 'bad'); readMessages(); refresh(); break;
      case 'messages': readMessages(); refresh(); break;
      case 'state': step = null; settle(); refresh(); break;
    }
  };

  // The stream of changes. A page that is hidden has none: browsers open only six connections to a server.
  const connection = find('#connection');
  const say = (text) => {
    if (!connection) return;
    connection.hidden = !text;
    connection.textContent = text;
  };
  let stream = null;
  let revision = body.dataset.revision;
  // A refused stream may mean that the command was started again, and does not know this browser.
  const probe = async () => {
    const status = await fetch(`${root}/approvals`, { headers: SCRIPT }).then((response) => response.status, () => 0);
    say(status === 401 ? SIGNED_OUT : UNREACHABLE);
    setTimeout(connect, 3000);
  };
  const connect = () => {
    if (stream || !body.dataset.events || document.hidden) return;
    const address = new URL(body.dataset.events, location.href);
    address.searchParams.set('after', revision);
    stream = new EventSource(address);
    stream.addEventListener('daemon', (event) => {
      revision = event.lastEventId || revision;
      say(event.data === 'away' ? 'chorusd has stopped; trying again' : '');
    });
    stream.addEventListener('change', (event) => {
      revision = event.lastEventId || revision;
      const { type, agent, conversation } = JSON.parse(event.data);
      refresh(type === 'missed' ? '' : type);
      const followed = new URLSearchParams(address.search);
      const isOurs = !agent || agent === followed.get('agent') && (conversation || null) === followed.get('conversation');
      if (messages && isOurs && (type === 'missed' || /^(message|context|turn|tool)\./.test(type))) readMessages();
    });
    stream.addEventListener('turn', (event) => onTurn(JSON.parse(event.data)));
    stream.onerror = () => {
      if (stream.readyState !== EventSource.CLOSED) return say(UNREACHABLE);
      stream = null;
      probe();
    };
  };
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) return connect();
    stream?.close();
    stream = null;
  });
  connect();

  // Forms that change something stay on their page.
  const sending = new Set();
  document.addEventListener('submit', async (event) => {
    const form = event.target;
    if (!form.matches('[data-post]')) return;
    event.preventDefault();
    // Enter presses no button, so that a disabled one does not hold it back.
    if (sending.has(form)) return;
    sending.add(form);
    const problem = find('.problem', form);
    if (problem) problem.textContent = '';
    const fields = new URLSearchParams(new FormData(form, event.submitter));
    const buttons = all('button', form);
    buttons.forEach((button) => { button.disabled = true; });
    const sent = text?.value;
    let failed = 'chorusctl web cannot be reached';
    try {
      const response = await fetchPage(form.action, { method: 'POST', body: fields });
      failed = response.ok ? '' : response.status === 401 ? SIGNED_OUT : (await response.text()).trim() || `failed: ${response.status}`;
    } catch { /* It says so below. */ }
    buttons.forEach((button) => { button.disabled = false; });
    sending.delete(form);
    if (problem) problem.textContent = failed;
    if (!failed && form.matches('[data-clear]')) {
      // What was typed after it is the next message.
      if (text.value === sent) text.value = '';
      keepDraft();
      form.elements.key.value = `web:${crypto.randomUUID()}`;
      toEnd();
    }
    if (!failed && form.matches('.answers')) answered.add(form.closest('article')?.id);
    if (!failed) document.activeElement?.blur?.();
    if (!failed && form.matches('[data-clear]') && !matchMedia('(pointer: coarse)').matches) find('textarea', form).focus();
    refresh();
    readMessages();
  });

  // What was written and not sent survives that the page is read again.
  const text = find('#text');
  const keepDraft = () => {
    if (text?.value) sessionStorage.setItem(location.pathname, text.value);
    else sessionStorage.removeItem(location.pathname);
  };
  if (text) {
    text.value = text.value || sessionStorage.getItem(location.pathname) || '';
    text.addEventListener('input', keepDraft);
    text.addEventListener('keydown', (event) => {
      const sends = event.key === 'Enter' && !event.shiftKey && !event.isComposing && !matchMedia('(pointer: coarse)').matches;
      if (!sends) return;
      event.preventDefault();
      if (text.value.trim()) text.form.requestSubmit();
    });
  }
  // Messages get their height when they are seen, which moves the end, until the user moves the page.
  if (messages && !location.hash && !location.search) {
    let calm = 0;
    let height = 0;
    const stop = () => { calm = Infinity; };
    ['wheel', 'touchstart', 'keydown', 'pointerdown'].forEach((name) => addEventListener(name, stop, { once: true, passive: true }));
    const settleAtEnd = () => {
      if (calm > 4) return;
      toEnd();
      calm = document.documentElement.scrollHeight === height ? calm + 1 : 0;
      height = document.documentElement.scrollHeight;
      requestAnimationFrame(settleAtEnd);
    };
    settleAtEnd();
  }

  // A captured conversation may grow without an event.
  const POLL = 5000;
  if (find('[data-on="poll"]')) setInterval(() => { if (!document.hidden) refresh('poll'); }, POLL);

  // Search as one types: on the page of the search, or above any other.
  const words = find('#words');
  let asked = null;
  let timer = 0;
  const search = async () => {
    asked?.abort();
    const query = words.value.trim();
    const isSearchPage = location.pathname === `${root}/search`;
    let results = find('#results');
    if (!query && !isSearchPage) {
      results?.remove();
      find('#main').hidden = false;
      return;
    }
    asked = new AbortController();
    try {
      const response = await fetchPage(`${root}/search?${new URLSearchParams({ q: query })}`, { signal: asked.signal });
      const fresh = find('#results', parse(await response.text()));
      if (!response.ok || !fresh) return;
      results = find('#results');
      if (results) {
        // Whoever has moved into the list already stays there.
        const selected = results.contains(document.activeElement) ? document.activeElement.closest('[data-item]') : null;
        results.replaceChildren(...document.adoptNode(fresh).childNodes);
        if (selected) {
          const items = [...results.querySelectorAll('[data-item]')];
          (items.find((item) => item.href === selected.href) ?? items[0])?.focus();
        }
      } else {
        find('#main').before(document.adoptNode(fresh));
        find('#main').hidden = true;
      }
      if (isSearchPage) history.replaceState(null, '', `${root}/search?${new URLSearchParams({ q: query })}`);
      updateAges();
    } catch { /* A newer one was typed. */ }
  };
  words?.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  if (location.pathname === `${root}/search`) words?.focus();

  // Keys.
  const items = () => all('[data-item], article[id]').filter((item) => item.offsetParent !== null);
  const select = (at) => {
    const list = items();
    const item = list[Math.max(0, Math.min(at, list.length - 1))];
    if (!item) return;
    if (!item.matches('a, [tabindex]')) item.tabIndex = -1;
    item.focus();
    item.scrollIntoView({ block: 'nearest' });
  };
  const selected = () => items().indexOf(document.activeElement);
  const help = find('#help');
  const keys = {
    '/': () => { words?.focus(); words?.select(); },
    '?': () => help?.showModal(),
    j: () => select(selected() + 1),
    k: () => select(selected() < 0 ? 0 : selected() - 1),
    g: () => select(0),
    G: () => select(items().length - 1),
    i: () => text?.focus(),
    h: () => location.assign(`${root}/`),
    u: () => location.assign(`${root}/usage`),
    a: () => location.assign(`${root}/approvals`),
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help?.open) return;
    const isWriting = document.activeElement?.matches('input, textarea, select');
    if (event.key === 'Escape') {
      if (document.activeElement === words && words.value) {
        words.value = '';
        search();
      }
      document.activeElement?.blur();
    } else if (document.activeElement === words && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      event.preventDefault();
      select(event.key === 'ArrowDown' ? 0 : -1);
    } else if (!isWriting) {
      const isList = document.activeElement?.matches('[data-item]');
      const name = isList && event.key === 'ArrowDown' ? 'j' : isList && event.key === 'ArrowUp' ? 'k' : event.key;
      if (!Object.hasOwn(keys, name)) return;
      event.preventDefault();
      keys[name]();
    }
  });
  body.dataset.ready = '1';
})();

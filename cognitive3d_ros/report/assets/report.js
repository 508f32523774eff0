'use strict';
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const cursor = read('cursor');
  const clouds = read('clouds');

  // One moment, in the plan, in all charts and among the pictures.
  const now = document.querySelector('circle.now');
  const marks = [...document.querySelectorAll('svg.time')].map((svg) => {
    const box = document.createElement('div');
    box.className = 'timed';
    svg.replaceWith(box);
    const mark = document.createElement('div');
    mark.className = 'mark';
    box.append(svg, mark);
    box.addEventListener('pointermove', (event) => {
      const at = box.getBoundingClientRect();
      show(Math.min(1, Math.max(0, (event.clientX - at.left) / at.width)) * cursor.length);
    });
    box.addEventListener('pointerleave', hide);
    return mark;
  });
  const rows = [...document.querySelectorAll('.pictures')].map((row) => [...row.querySelectorAll('figure')]);

  function nearest(times, t) {
    let low = 0;
    let high = times.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < t) low = middle + 1; else high = middle;
    }
    return low > 0 && t - times[low - 1] < times[low] - t ? low - 1 : low;
  }

  function show(t) {
    const share = cursor.length > 0 ? t / cursor.length : 0;
    for (const mark of marks) {
      mark.style.display = 'block';
      mark.style.left = `${share * 100}%`;
    }
    if (now && cursor.t && cursor.t.length) {
      const i = nearest(cursor.t, t);
      now.setAttribute('cx', cursor.x[i]);
      now.setAttribute('cy', cursor.y[i]);
      now.style.visibility = 'visible';
    }
    for (const row of rows) {
      const i = row.length ? nearest(row.map((figure) => Number(figure.dataset.t)), t) : -1;
      row.forEach((figure, k) => figure.classList.toggle('near', k === i));
    }
  }

  function hide() {
    for (const mark of marks) mark.style.display = 'none';
    if (now) now.style.visibility = 'hidden';
    for (const row of rows) row.forEach((figure) => figure.classList.remove('near'));
  }

  // Where the pointer is on the path.
  const plan = document.querySelector('svg.plan');
  if (plan && cursor.t && cursor.t.length) {
    plan.addEventListener('pointermove', (event) => {
      const at = plan.getBoundingClientRect();
      const scale = plan.viewBox.baseVal.width / at.width;
      const x = (event.clientX - at.left) * scale;
      const y = (event.clientY - at.top) * scale;
      let best = -1;
      let least = 15 * 15;
      for (let i = 0; i < cursor.t.length; i++) {
        const d = (cursor.x[i] - x) ** 2 + (cursor.y[i] - y) ** 2;
        if (d < least) { least = d; best = i; }
      }
      if (best >= 0) show(cursor.t[best]); else hide();
    });
    plan.addEventListener('pointerleave', hide);
  }

  // A picture at its full size.
  const dialog = document.createElement('dialog');
  const large = document.createElement('img');
  large.alt = '';
  dialog.append(large);
  document.body.append(dialog);
  dialog.addEventListener('click', () => dialog.close());
  for (const image of document.querySelectorAll('.pictures img')) {
    image.addEventListener('click', () => {
      large.src = image.src;
      large.alt = image.alt;
      dialog.showModal();
    });
  }

  // Points, seen from any side.
  const canvas = document.getElementById('cloud');
  if (!canvas || !clouds.length) return;
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const pen = canvas.getContext('2d');
  const view = { yaw: 0.7, pitch: 0.5, zoom: 1 };
  let points = null;

  function choose(n) {
    const cloud = clouds[n];
    const raw = new Int16Array(bytes(cloud.xyz).buffer);
    const count = raw.length / 3;
    const colors = new Array(count);
    const rgb = cloud.rgb ? bytes(cloud.rgb) : null;
    const shade = cloud.shade ? bytes(cloud.shade) : null;
    const heights = Array.from({ length: count }, (_, i) => raw[3 * i + 2]).sort((a, b) => a - b);
    const low = heights[Math.floor(count * 0.02)] || 0;
    const high = heights[Math.floor(count * 0.98)] || 1;
    const away = [];
    for (let i = 0; i < count; i++) {
      const share = Math.min(1, Math.max(0, (raw[3 * i + 2] - low) / Math.max(1, high - low)));
      if (rgb) colors[i] = `rgb(${rgb[3 * i]},${rgb[3 * i + 1]},${rgb[3 * i + 2]})`;
      else if (shade) colors[i] = `hsl(${210 - 170 * (shade[i] / 255)},80%,${45 + 25 * (shade[i] / 255)}%)`;
      else colors[i] = `hsl(${220 - 180 * share},85%,60%)`;
      away.push(Math.hypot(raw[3 * i], raw[3 * i + 1]));
    }
    away.sort((a, b) => a - b);
    const reach = Math.max(100, away[Math.floor(count * 0.95)] || 0);
    points = { raw, count, colors, reach };
    document.querySelectorAll('button[data-cloud]').forEach((b) => b.classList.toggle('on', Number(b.dataset.cloud) === n));
    draw();
  }

  function draw() {
    const { width, height } = canvas;
    pen.clearRect(0, 0, width, height);
    const scale = view.zoom * 0.8 * width / 2 / points.reach;
    const [cy, sy] = [Math.cos(view.yaw), Math.sin(view.yaw)];
    const [cp, sp] = [Math.cos(view.pitch), Math.sin(view.pitch)];
    const size = Math.max(3, (points.count < 2000 ? 5 : 3) * Math.sqrt(view.zoom));
    for (let i = 0; i < points.count; i++) {
      const x = points.raw[3 * i];
      const y = points.raw[3 * i + 1];
      const z = points.raw[3 * i + 2];
      const across = x * sy - y * cy;
      const away = x * cy + y * sy;
      pen.fillStyle = points.colors[i];
      pen.fillRect(width / 2 + across * scale, height / 2 - (z * cp + away * sp) * scale, size, size);
    }
    pen.strokeStyle = '#fff';
    pen.lineWidth = 2;
    pen.strokeRect(width / 2 - 5, height / 2 - 5, 10, 10); // the sensor
  }

  let held = null;
  canvas.addEventListener('pointerdown', (event) => {
    held = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!held) return;
    view.yaw -= (event.clientX - held[0]) * 0.008;
    view.pitch = Math.min(1.57, Math.max(0, view.pitch + (event.clientY - held[1]) * 0.008));
    held = [event.clientX, event.clientY];
    draw();
  });
  canvas.addEventListener('pointerup', () => { held = null; });
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    view.zoom = Math.min(40, Math.max(0.3, view.zoom * Math.exp(-event.deltaY * 0.0015)));
    draw();
  }, { passive: false });
  for (const button of document.querySelectorAll('button[data-cloud]')) {
    button.addEventListener('click', () => choose(Number(button.dataset.cloud)));
  }
  choose(0);
})();

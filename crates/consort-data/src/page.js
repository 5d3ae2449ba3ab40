// A click on a heading, or Enter, sorts the table by that column: numbers by value, the rest as text.
for (const table of document.querySelectorAll('table')) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const value = row => row.cells[column].textContent.trim();
    // What is no number, such as a missing value, stays below in both directions.
    const compare = (a, b, sign) => {
      const [x, y] = [parseFloat(value(a)), parseFloat(value(b))];
      const [noX, noY] = [x, y].map(Number.isNaN);
      if (noX !== noY) return noX ? 1 : -1;
      return sign * (noX || x === y ? value(a).localeCompare(value(b)) : x - y);
    };
    const sort = () => {
      const down = heading.ariaSort === 'ascending';
      for (const other of heading.parentNode.cells) other.removeAttribute('aria-sort');
      heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      body.append(...[...body.rows].sort((a, b) => compare(a, b, down ? -1 : 1)));
    };
    heading.tabIndex = 0;
    heading.addEventListener('click', sort);
    heading.addEventListener('keydown', event => { if (event.key === 'Enter') sort(); });
  });
}
// Paper shows every table.
addEventListener('beforeprint', () => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
});

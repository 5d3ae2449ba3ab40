// A click on a heading, or Enter, sorts the table by that column: numbers by value, the rest as text.
for (const table of document.querySelectorAll('table')) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const value = row => row.cells[column].textContent.trim();
    const compare = (a, b) => {
      const numbers = [parseFloat(value(a)), parseFloat(value(b))];
      const [x, y] = numbers.map(n => Number.isNaN(n) ? Infinity : n);
      return x !== y ? (x < y ? -1 : 1) : value(a).localeCompare(value(b));
    };
    const sort = () => {
      const down = heading.ariaSort === 'ascending';
      for (const other of heading.parentNode.cells) other.removeAttribute('aria-sort');
      heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      body.append(...[...body.rows].sort((a, b) => down ? compare(b, a) : compare(a, b)));
    };
    heading.tabIndex = 0;
    heading.addEventListener('click', sort);
    heading.addEventListener('keydown', event => { if (event.key === 'Enter') sort(); });
  });
}

// Before anything is painted: the theme that was chosen. No module, so that it runs at once.
if (localStorage.theme) document.documentElement.dataset.theme = localStorage.theme;

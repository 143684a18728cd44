-- planwatch:begin neovim 48abbe177071b10c
if vim.lsp.config then
  vim.lsp.config("planwatch", { cmd = { "planwatch", "lsp" }, filetypes = { "markdown" }, root_markers = { "plans" } })
  vim.lsp.enable("planwatch")
end
-- planwatch:end

export default {
  input: "openapi.json",
  output: "made_by_hey_api",
  logs: { file: false },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "zod", { name: "@hey-api/sdk", validator: true }],
};

/** Models as the picker lists them: by provider, what can be used first. */
import type { Effort, ModelInfo } from "../../shared/wire";
import { count } from "../transcript/words";
import type { Option } from "../ui/select";

const NAMES: Record<string, string> = {
  anthropic: "Anthropic", openai: "OpenAI", gemini: "Gemini", google: "Google", mistral: "Mistral", groq: "Groq", ollama: "Ollama",
  openrouter: "OpenRouter", deepseek: "DeepSeek", xai: "xAI", lmstudio: "LM Studio", vllm: "vLLM", azure: "Azure", bedrock: "Amazon Bedrock",
  vertex: "Vertex AI", scripted: "Scripted (no model)",
};

export const EFFORTS: readonly Effort[] = ["minimal", "low", "medium", "high", "xhigh", "max"];

export function providerName(provider: string): string {
  return NAMES[provider] ?? provider;
}

/** The last part of a model's id: what fits into a small box. */
export function shortName(model: ModelInfo | undefined, id: string): string {
  return model?.name || id.slice(id.indexOf("/") + 1);
}

/** `key:<provider>` behind the models of a provider that lacks a key. */
export const KEY = "key:";

export function optionsOf(models: readonly ModelInfo[]): Option[] {
  const providers = [...new Set(models.map((model) => model.provider))];
  const usable = (provider: string) => models.some((model) => model.provider === provider && model.available);
  return [...providers.filter(usable), ...providers.filter((provider) => !usable(provider))].flatMap((provider) => {
    const own = models.filter((model) => model.provider === provider);
    const group = providerName(provider);
    const options: Option[] = [...own.filter((model) => model.available), ...own.filter((model) => !model.available)].map((model) => ({
      id: model.id, label: shortName(model, model.id), group, ...describe(model),
    }));
    const keyless = own.some((model) => !model.available && /key/i.test(model.reason ?? ""));
    if (keyless) options.push({ id: KEY + provider, label: `Set a key for ${group}…`, icon: "key", group, action: true });
    return options;
  });
}

function describe(model: ModelInfo): Partial<Option> {
  if (!model.available) return { disabled: model.reason ?? "Not available." };
  const facts = [
    model.contextWindow === undefined ? "" : `${count(model.contextWindow)} context`,
    model.reasoning ? "thinks" : "",
    model.images ? "sees images" : "",
  ].filter(Boolean);
  return facts.length > 0 ? { detail: facts.join(" · ") } : {};
}
